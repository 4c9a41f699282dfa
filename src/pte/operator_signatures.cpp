// SPDX-License-Identifier: BSD-3-Clause
//
// Made by tests/mutants/operator_signatures.py of ExecuTorch 1.5.1: 270 operators.
#include "pte/operator_signatures.h"

namespace etstream {

const std::string_view kOperatorSignatures =
    R"(
ASW* aten::full.out
AW* aten::ones.out aten::rand.out aten::randn.out aten::zeros.out
AaW* dim_order_ops::_empty_dim_order.out
AiW* aten::empty.out
LIW* aten::cat.out aten::stack.out
M* aten::sym_numel
MAV executorch_prim::et_view.default
MI* aten::sym_size.int
S* executorch_prim::ceil.Scalar executorch_prim::neg.Scalar executorch_prim::round.Scalar
  executorch_prim::sym_float.Scalar executorch_prim::sym_int.Scalar executorch_prim::sym_not.Scalar
  executorch_prim::trunc.Scalar
SS* executorch_prim::add.Scalar executorch_prim::eq.Scalar executorch_prim::floordiv.Scalar
  executorch_prim::floordiv.int executorch_prim::ge.Scalar executorch_prim::gt.Scalar
  executorch_prim::le.Scalar executorch_prim::lt.Scalar executorch_prim::mod.Scalar executorch_prim::mod.int
  executorch_prim::mul.Scalar executorch_prim::sub.Scalar executorch_prim::sym_max.Scalar
  executorch_prim::sym_min.Scalar executorch_prim::truediv.Scalar
SSS* executorch_prim::sym_ite.Scalar
SSSW* aten::arange.start_out
STW* aten::pow.Scalar_out
SW* aten::arange.out aten::scalar_tensor.out
T* aten::_local_scalar_dense
TAAAABWW* aten::max_pool2d_with_indices.out
TAAABBiW* aten::avg_pool2d.out
TAAW* aten::roll.out
TAAiW* aten::as_strided_copy.out
TABW* aten::amax.out aten::amin.out aten::expand_copy.out
TABddW* aten::_upsample_bilinear2d_aa.out
TAIBW* aten::_fft_r2c.out
TAIIW* aten::_fft_c2r.out
TAIU* aten::split_with_sizes_copy.out
TASW* aten::constant_pad_nd.out
TAW* aten::_adaptive_avg_pool2d.out aten::flip.out aten::permute_copy.out aten::reflection_pad1d.out
  aten::reflection_pad2d.out aten::reflection_pad3d.out aten::repeat.out aten::replication_pad1d.out
  aten::replication_pad2d.out aten::replication_pad3d.out aten::squeeze_copy.dims_out aten::view_copy.out
TAttDWWW* aten::native_layer_norm.out
TBaW* dim_order_ops::_clone_dim_order.out dim_order_ops::_to_dim_order_copy.out
TBiW* aten::_to_copy.out
TDIIIIW* quantized_decomposed::quantize_per_tensor.out
TDIIIIiW* quantized_decomposed::dequantize_per_tensor.out
TDIIITDIIIDIIIW* quantized_decomposed::add.out
TDW* aten::_pdist_forward.out
TDbWW* aten::native_dropout.out
TIBW* aten::_log_softmax.out aten::_softmax.out aten::any.out
TIBWW* aten::max.dim_max aten::min.dim_min
TIBiW* aten::prod.int_out
TIIBBWW* aten::topk.values
TIIDIWW* quantized_decomposed::choose_qparams.Tensor_out
TIIIW* aten::diagonal_copy.out aten::narrow_copy.out aten::unfold_copy.out
TIIU* aten::split_copy.Tensor_out
TIIW* aten::select_copy.int_out aten::transpose_copy.int_out
TITBW* aten::gather.out
TITSW* aten::scatter.value_out
TITTW* aten::scatter.src_out aten::scatter_add.out
TITW* aten::index_select.out
TIU* aten::unbind_copy.int_out
TIW* aten::glu.out aten::pixel_shuffle.out aten::pixel_unshuffle.out aten::squeeze_copy.dim_out aten::tril.out
  aten::unsqueeze_copy.out preprocess::tile_crop.out
TIWW* quantized_decomposed::choose_qparams_per_token_asymmetric.out
TIiW* aten::cumsum.out
TIiiIW* aten::slice_copy.Tensor_out
TNW* aten::gelu.out
TOTBW* aten::index_put.out
TOW* aten::index.Tensor_out
TSSSW* aten::elu.out
TSSW* aten::add.Scalar_out aten::hardtanh.out aten::rsub.Scalar_out aten::sub.Scalar_out
TSW* aten::bitwise_and.Scalar_out aten::bitwise_left_shift.Tensor_Scalar_out aten::bitwise_or.Scalar_out
  aten::bitwise_right_shift.Tensor_Scalar_out aten::bitwise_xor.Scalar_out aten::div.Scalar_out
  aten::eq.Scalar_out aten::fill.Scalar_out aten::fmod.Scalar_out aten::ge.Scalar_out aten::gt.Scalar_out
  aten::le.Scalar_out aten::leaky_relu.out aten::lt.Scalar_out aten::mul.Scalar_out aten::ne.Scalar_out
  aten::pow.Tensor_Scalar_out aten::remainder.Scalar_out
TSiW* aten::full_like.out
TSnW* aten::div.Scalar_mode_out
TTAAAABTW* aten::max_pool2d_with_indices_backward.grad_input
TTBW* aten::copy.out
TTDiW* aten::_cdist_forward.out
TTIBBW* aten::embedding.out
TTIIBW* aten::grid_sampler_2d.out
TTIIW* aten::select_scatter.out
TTIiiIW* aten::slice_scatter.out
TTSW* aten::add.out aten::masked_fill.Scalar_out aten::sub.out
TTTIIIIW* quantized_decomposed::dequantize_per_token.out quantized_decomposed::quantize_per_channel.out
TTTIIIW* quantized_decomposed::quantize_per_tensor.Tensor_out quantized_decomposed::quantize_per_token.out
TTTIIIiW* quantized_decomposed::dequantize_per_tensor.Tensor_out
TTTItDBdW* llama::custom_sdpa.out
TTTItDBdttttttBW* llama::custom_quantized_sdpa.out
TTTSSW* aten::addmm.out
TTTTTIIIIIINDW* llama::quantized_moe_ffn.out
TTTTTTWW* llama::channelwise_gated_delta_rule.out llama::gated_delta_rule.out
TTTW* aten::masked_scatter.out aten::where.self_out
TTTWWIItDBdW* llama::sdpa_with_kv_cache.out
TTTaAAABAIGWWW* aten::convolution_backward.out
TTTtW* quantized_decomposed::mixed_mm.out
TTTtiW* quantized_decomposed::mixed_linear.out
TTW* aten::atan2.out aten::bitwise_and.Tensor_out aten::bitwise_left_shift.Tensor_out
  aten::bitwise_or.Tensor_out aten::bitwise_right_shift.Tensor_out aten::bitwise_xor.Tensor_out aten::bmm.out
  aten::div.out aten::eq.Tensor_out aten::fill.Tensor_out aten::floor_divide.out aten::fmod.Tensor_out
  aten::ge.Tensor_out aten::gt.Tensor_out aten::le.Tensor_out aten::logical_and.out aten::logical_or.out
  aten::logical_xor.out aten::lt.Tensor_out aten::masked_select.out aten::maximum.out aten::minimum.out
  aten::mm.out aten::mul.out aten::ne.Tensor_out aten::pow.Tensor_Tensor_out aten::remainder.Tensor_out
TTnW* aten::div.out_mode
TTtAAABAIW* aten::convolution.out
TTtIIIIiW* quantized_decomposed::dequantize_per_channel.out
TTtIITW* quantized_decomposed::embedding_2bit.out quantized_decomposed::embedding_4bit.out
  quantized_decomposed::embedding_byte.out
TTtIITiW* quantized_decomposed::embedding_2bit.dtype_out quantized_decomposed::embedding_4bit.dtype_out
  quantized_decomposed::embedding_byte.dtype_out
TTtW* aten::linear.out
TW* aten::_conj_physical.out aten::abs.out aten::acos.out aten::acosh.out aten::alias_copy.out
  aten::any.all_out aten::asin.out aten::asinh.out aten::atan.out aten::atanh.out aten::bitwise_not.out
  aten::ceil.out aten::cos.out aten::cosh.out aten::detach_copy.out aten::erf.out aten::exp.out
  aten::expm1.out aten::floor.out aten::isinf.out aten::isnan.out aten::lift_fresh_copy.out aten::log.out
  aten::log10.out aten::log1p.out aten::log2.out aten::logical_not.out aten::max.unary_out aten::min.unary_out
  aten::neg.out aten::nonzero.out aten::reciprocal.out aten::relu.out aten::round.out aten::rsqrt.out
  aten::sigmoid.out aten::sign.out aten::sin.out aten::sinh.out aten::sqrt.out aten::t_copy.out aten::tan.out
  aten::tanh.out aten::trunc.out aten::view_as_real_copy.out et_copy::_d2h_copy.out et_copy::_h2d_copy.out
  llama::fallback.out llama::fast_hadamard_transform.out
TWITW* llama::update_cache_with_indices.out
TWIW* llama::update_cache.out
TaBBW* aten::var.out
TaBW* aten::any.dims_out
TaBfW* aten::upsample_bilinear2d.vec_out
TaBiW* aten::mean.out aten::sum.IntList_out
TafW* aten::upsample_nearest2d.vec_out
TasBW* aten::var.correction_out
TasBWW* aten::var_mean.correction_out
TdW* aten::logit.out
TiBW* aten::argmax.out aten::argmin.out
TiW* aten::clone.out aten::mean.dtype_out aten::prod.out aten::repeat_interleave.Tensor_out
TssW* aten::clamp.out
TttBDDWWW* aten::_native_batch_norm_legit.no_stats_out
TttIIIIDWWW* aten::native_group_norm.out
TttTTDDWWW* aten::_native_batch_norm_legit_no_training.out
TttW* aten::clamp.Tensor_out
TttWWBDDWWW* aten::_native_batch_norm_legit.out
WOTB* aten::index_put_
WTB* aten::copy_
WTI executorch_prim::et_copy_index.tensor
)";

}  // namespace etstream
