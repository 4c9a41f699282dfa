// SPDX-License-Identifier: BSD-3-Clause
//
// Made by tests/mutants/operator_signatures.py of ExecuTorch 1.5.1: 293 operators.
#include "runtime_checks/operator_signatures.h"

namespace etstream {
namespace signatures {

using enum Parameter;

constexpr OperatorSignature kSignatures[] = {
    {{kIntList, kOptionalInt, kOut, kReturn}, "aten::empty.out"},
    {{kIntList, kOptionalIntList, kOut, kReturn}, "dim_order_ops::_empty_dim_order.out"},
    {{kIntList, kOut, kReturn}, "aten::ones.out aten::rand.out aten::randn.out aten::zeros.out"},
    {{kIntList, kScalar, kOut, kReturn}, "aten::full.out"},
    {{kOut, kOptionalTensorList, kTensor, kBool, kReturn}, "aten::index_put_"},
    {{kOut, kTensor, kBool, kReturn}, "aten::copy_"},
    {{kOut, kTensor, kInt}, "executorch_prim::et_copy_index.tensor"},
    {{kScalar, kOut, kReturn}, "aten::arange.out aten::scalar_tensor.out"},
    {{kScalar, kReturn},
     "executorch_prim::ceil.Scalar executorch_prim::neg.Scalar executorch_prim::round.Scalar "
     "executorch_prim::sym_float.Scalar executorch_prim::sym_int.Scalar executorch_prim::sym_not.Scalar "
     "executorch_prim::trunc.Scalar"},
    {{kScalar, kScalar, kReturn},
     "executorch_prim::add.Scalar executorch_prim::eq.Scalar executorch_prim::floordiv.Scalar "
     "executorch_prim::floordiv.int executorch_prim::ge.Scalar executorch_prim::gt.Scalar "
     "executorch_prim::le.Scalar executorch_prim::lt.Scalar executorch_prim::mod.Scalar "
     "executorch_prim::mod.int executorch_prim::mul.Scalar executorch_prim::sub.Scalar "
     "executorch_prim::sym_max.Scalar executorch_prim::sym_min.Scalar executorch_prim::truediv.Scalar"},
    {{kScalar, kScalar, kScalar, kOut, kReturn}, "aten::arange.start_out"},
    {{kScalar, kScalar, kScalar, kReturn}, "executorch_prim::sym_ite.Scalar"},
    {{kScalar, kTensor, kOut, kReturn}, "aten::pow.Scalar_out"},
    {{kShape, kInt, kReturn}, "aten::sym_size.int"},
    {{kShape, kIntList, kView}, "executorch_prim::et_view.default"},
    {{kShape, kReturn}, "aten::sym_numel"},
    {{kTensor, kBool, kOptionalInt, kOut, kReturn}, "aten::_to_copy.out"},
    {{kTensor, kBool, kOptionalIntList, kOut, kReturn},
     "dim_order_ops::_clone_dim_order.out dim_order_ops::_to_dim_order_copy.out"},
    {{kTensor, kDouble, kInt, kInt, kInt, kInt, kOptionalInt, kOut, kReturn},
     "quantized_decomposed::dequantize_per_tensor.out"},
    {{kTensor, kDouble, kInt, kInt, kInt, kInt, kOut, kReturn},
     "cortex_m::dequantize_per_tensor.out cortex_m::quantize_per_tensor.out "
     "quantized_decomposed::quantize_per_tensor.out"},
    {{kTensor, kDouble, kInt, kInt, kInt, kTensor, kDouble, kInt, kInt, kInt, kDouble, kInt, kInt, kInt, kOut,
      kReturn},
     "quantized_decomposed::add.out"},
    {{kTensor, kDouble, kOptionalBool, kOut, kOut, kReturn}, "aten::native_dropout.out"},
    {{kTensor, kDouble, kOut, kReturn}, "aten::_pdist_forward.out"},
    {{kTensor, kInt, kBool, kOptionalInt, kOut, kReturn}, "aten::prod.int_out"},
    {{kTensor, kInt, kBool, kOut, kOut, kReturn}, "aten::max.dim_max aten::min.dim_min"},
    {{kTensor, kInt, kBool, kOut, kReturn}, "aten::_log_softmax.out aten::_softmax.out aten::any.out"},
    {{kTensor, kInt, kInt, kBool, kBool, kOut, kOut, kReturn}, "aten::topk.values"},
    {{kTensor, kInt, kInt, kDouble, kInt, kOut, kOut, kReturn},
     "quantized_decomposed::choose_qparams.Tensor_out"},
    {{kTensor, kInt, kInt, kInt, kInt, kInt, kInt, kOut, kReturn}, "cortex_m::softmax.out"},
    {{kTensor, kInt, kInt, kInt, kOut, kReturn},
     "aten::diagonal_copy.out aten::narrow_copy.out aten::unfold_copy.out"},
    {{kTensor, kInt, kInt, kInt, kTensor, kInt, kInt, kInt, kInt, kInt, kInt, kInt, kInt, kOut, kReturn},
     "cortex_m::quantized_add.out"},
    {{kTensor, kInt, kInt, kOut, kReturn}, "aten::select_copy.int_out aten::transpose_copy.int_out"},
    {{kTensor, kInt, kInt, kOutList, kReturn}, "aten::split_copy.Tensor_out"},
    {{kTensor, kInt, kOptionalInt, kOptionalInt, kInt, kOut, kReturn}, "aten::slice_copy.Tensor_out"},
    {{kTensor, kInt, kOptionalInt, kOut, kReturn}, "aten::cumsum.out"},
    {{kTensor, kInt, kOut, kOut, kReturn}, "quantized_decomposed::choose_qparams_per_token_asymmetric.out"},
    {{kTensor, kInt, kOut, kReturn},
     "aten::glu.out aten::pixel_shuffle.out aten::pixel_unshuffle.out aten::squeeze_copy.dim_out "
     "aten::tril.out aten::unsqueeze_copy.out preprocess::tile_crop.out"},
    {{kTensor, kInt, kOutList, kReturn}, "aten::unbind_copy.int_out"},
    {{kTensor, kInt, kTensor, kBool, kOut, kReturn}, "aten::gather.out"},
    {{kTensor, kInt, kTensor, kInt, kInt, kDouble, kOut, kReturn}, "cortex_m::quantized_div.out"},
    {{kTensor, kInt, kTensor, kInt, kInt, kInt, kInt, kOut, kReturn}, "cortex_m::quantized_mul.out"},
    {{kTensor, kInt, kTensor, kInt, kInt, kInt, kInt, kTensor, kOut, kReturn},
     "cortex_m::quantized_batch_matmul.out"},
    {{kTensor, kInt, kTensor, kOut, kReturn}, "aten::index_select.out"},
    {{kTensor, kInt, kTensor, kScalar, kOut, kReturn}, "aten::scatter.value_out"},
    {{kTensor, kInt, kTensor, kTensor, kOut, kReturn}, "aten::scatter.src_out aten::scatter_add.out"},
    {{kTensor, kIntList, kBool, kOptionalDouble, kOptionalDouble, kOut, kReturn},
     "aten::_upsample_bilinear2d_aa.out"},
    {{kTensor, kIntList, kBool, kOut, kReturn}, "aten::amax.out aten::amin.out aten::expand_copy.out"},
    {{kTensor, kIntList, kInt, kBool, kOut, kReturn}, "aten::_fft_r2c.out"},
    {{kTensor, kIntList, kInt, kInt, kOut, kReturn}, "aten::_fft_c2r.out"},
    {{kTensor, kIntList, kInt, kOutList, kReturn}, "aten::split_with_sizes_copy.out"},
    {{kTensor, kIntList, kIntList, kInt, kOut, kReturn}, "cortex_m::pad.out"},
    {{kTensor, kIntList, kIntList, kIntList, kBool, kBool, kOptionalInt, kOut, kReturn},
     "aten::avg_pool2d.out"},
    {{kTensor, kIntList, kIntList, kIntList, kBool, kInt, kInt, kInt, kTensor, kOut, kReturn},
     "cortex_m::quantized_avg_pool2d.out cortex_m::quantized_avg_pool2d_nhwc.out"},
    {{kTensor, kIntList, kIntList, kIntList, kIntList, kBool, kInt, kInt, kInt, kInt, kOut, kReturn},
     "cortex_m::quantized_max_pool2d.out cortex_m::quantized_max_pool2d_nhwc.out"},
    {{kTensor, kIntList, kIntList, kIntList, kIntList, kBool, kOut, kOut, kReturn},
     "aten::max_pool2d_with_indices.out"},
    {{kTensor, kIntList, kIntList, kOptionalInt, kOut, kReturn}, "aten::as_strided_copy.out"},
    {{kTensor, kIntList, kIntList, kOut, kReturn}, "aten::roll.out"},
    {{kTensor, kIntList, kOptionalTensor, kOptionalTensor, kDouble, kOut, kOut, kOut, kReturn},
     "aten::native_layer_norm.out"},
    {{kTensor, kIntList, kOut, kReturn},
     "aten::_adaptive_avg_pool2d.out aten::flip.out aten::permute_copy.out aten::reflection_pad1d.out "
     "aten::reflection_pad2d.out aten::reflection_pad3d.out aten::repeat.out aten::replication_pad1d.out "
     "aten::replication_pad2d.out aten::replication_pad3d.out aten::squeeze_copy.dims_out "
     "aten::view_copy.out cortex_m::transpose.out"},
    {{kTensor, kIntList, kScalar, kOut, kReturn}, "aten::constant_pad_nd.out"},
    {{kTensor, kOptionalDouble, kOut, kReturn}, "aten::logit.out"},
    {{kTensor, kOptionalInt, kBool, kOut, kReturn}, "aten::argmax.out aten::argmin.out"},
    {{kTensor, kOptionalInt, kOut, kReturn},
     "aten::clone.out aten::mean.dtype_out aten::prod.out aten::repeat_interleave.Tensor_out"},
    {{kTensor, kOptionalIntList, kBool, kBool, kOut, kReturn}, "aten::var.out"},
    {{kTensor, kOptionalIntList, kBool, kOptionalDoubleList, kOut, kReturn},
     "aten::upsample_bilinear2d.vec_out"},
    {{kTensor, kOptionalIntList, kBool, kOptionalInt, kOut, kReturn}, "aten::mean.out aten::sum.IntList_out"},
    {{kTensor, kOptionalIntList, kBool, kOut, kReturn}, "aten::any.dims_out"},
    {{kTensor, kOptionalIntList, kOptionalDoubleList, kOut, kReturn}, "aten::upsample_nearest2d.vec_out"},
    {{kTensor, kOptionalIntList, kOptionalScalar, kBool, kOut, kOut, kReturn},
     "aten::var_mean.correction_out"},
    {{kTensor, kOptionalIntList, kOptionalScalar, kBool, kOut, kReturn}, "aten::var.correction_out"},
    {{kTensor, kOptionalScalar, kOptionalScalar, kOut, kReturn}, "aten::clamp.out"},
    {{kTensor, kOptionalTensor, kOptionalTensor, kBool, kDouble, kDouble, kOut, kOut, kOut, kReturn},
     "aten::_native_batch_norm_legit.no_stats_out"},
    {{kTensor, kOptionalTensor, kOptionalTensor, kInt, kInt, kInt, kInt, kDouble, kOut, kOut, kOut, kReturn},
     "aten::native_group_norm.out"},
    {{kTensor, kOptionalTensor, kOptionalTensor, kOut, kOut, kBool, kDouble, kDouble, kOut, kOut, kOut,
      kReturn},
     "aten::_native_batch_norm_legit.out"},
    {{kTensor, kOptionalTensor, kOptionalTensor, kOut, kReturn}, "aten::clamp.Tensor_out"},
    {{kTensor, kOptionalTensor, kOptionalTensor, kTensor, kTensor, kDouble, kDouble, kOut, kOut, kOut,
      kReturn},
     "aten::_native_batch_norm_legit_no_training.out"},
    {{kTensor, kOptionalTensorList, kOut, kReturn}, "aten::index.Tensor_out"},
    {{kTensor, kOptionalTensorList, kTensor, kBool, kOut, kReturn}, "aten::index_put.out"},
    {{kTensor, kOut, kInt, kOut, kReturn}, "llama::update_cache.out"},
    {{kTensor, kOut, kInt, kTensor, kOut, kReturn}, "llama::update_cache_with_indices.out"},
    {{kTensor, kOut, kReturn},
     "aten::_conj_physical.out aten::abs.out aten::acos.out aten::acosh.out aten::alias_copy.out "
     "aten::any.all_out aten::asin.out aten::asinh.out aten::atan.out aten::atanh.out "
     "aten::bitwise_not.out aten::ceil.out aten::cos.out aten::cosh.out aten::detach_copy.out "
     "aten::erf.out aten::exp.out aten::expm1.out aten::floor.out aten::isinf.out aten::isnan.out "
     "aten::lift_fresh_copy.out aten::log.out aten::log10.out aten::log1p.out aten::log2.out "
     "aten::logical_not.out aten::max.unary_out aten::min.unary_out aten::neg.out aten::nonzero.out "
     "aten::reciprocal.out aten::relu.out aten::round.out aten::rsqrt.out aten::sigmoid.out aten::sign.out "
     "aten::sin.out aten::sinh.out aten::sqrt.out aten::t_copy.out aten::tan.out aten::tanh.out "
     "aten::trunc.out aten::view_as_real_copy.out et_copy::_d2h_copy.out et_copy::_h2d_copy.out "
     "llama::fallback.out llama::fast_hadamard_transform.out"},
    {{kTensor, kReturn}, "aten::_local_scalar_dense"},
    {{kTensor, kScalar, kOptionalInt, kOut, kReturn}, "aten::full_like.out"},
    {{kTensor, kScalar, kOptionalString, kOut, kReturn}, "aten::div.Scalar_mode_out"},
    {{kTensor, kScalar, kOut, kReturn},
     "aten::bitwise_and.Scalar_out aten::bitwise_left_shift.Tensor_Scalar_out aten::bitwise_or.Scalar_out "
     "aten::bitwise_right_shift.Tensor_Scalar_out aten::bitwise_xor.Scalar_out aten::div.Scalar_out "
     "aten::eq.Scalar_out aten::fill.Scalar_out aten::fmod.Scalar_out aten::ge.Scalar_out "
     "aten::gt.Scalar_out aten::le.Scalar_out aten::leaky_relu.out aten::lt.Scalar_out "
     "aten::mul.Scalar_out aten::ne.Scalar_out aten::pow.Tensor_Scalar_out aten::remainder.Scalar_out"},
    {{kTensor, kScalar, kScalar, kOut, kReturn},
     "aten::add.Scalar_out aten::hardtanh.out aten::rsub.Scalar_out aten::sub.Scalar_out"},
    {{kTensor, kScalar, kScalar, kScalar, kOut, kReturn}, "aten::elu.out"},
    {{kTensor, kString, kOut, kReturn}, "aten::gelu.out"},
    {{kTensor, kTensor, kBool, kOut, kReturn}, "aten::copy.out"},
    {{kTensor, kTensor, kDouble, kOptionalInt, kOut, kReturn}, "aten::_cdist_forward.out"},
    {{kTensor, kTensor, kInt, kBool, kBool, kOut, kReturn}, "aten::embedding.out"},
    {{kTensor, kTensor, kInt, kInt, kBool, kOut, kReturn}, "aten::grid_sampler_2d.out"},
    {{kTensor, kTensor, kInt, kInt, kOut, kReturn}, "aten::select_scatter.out"},
    {{kTensor, kTensor, kInt, kOptionalInt, kOptionalInt, kInt, kOut, kReturn}, "aten::slice_scatter.out"},
    {{kTensor, kTensor, kIntList, kIntList, kIntList, kIntList, kBool, kTensor, kOut, kReturn},
     "aten::max_pool2d_with_indices_backward.grad_input"},
    {{kTensor, kTensor, kOptionalString, kOut, kReturn}, "aten::div.out_mode"},
    {{kTensor, kTensor, kOptionalTensor, kInt, kInt, kInt, kInt, kOptionalInt, kOut, kReturn},
     "quantized_decomposed::dequantize_per_channel.out"},
    {{kTensor, kTensor, kOptionalTensor, kInt, kInt, kTensor, kOptionalInt, kOut, kReturn},
     "quantized_decomposed::embedding_2bit.dtype_out quantized_decomposed::embedding_4bit.dtype_out "
     "quantized_decomposed::embedding_byte.dtype_out"},
    {{kTensor, kTensor, kOptionalTensor, kInt, kInt, kTensor, kOut, kReturn},
     "quantized_decomposed::embedding_2bit.out quantized_decomposed::embedding_4bit.out "
     "quantized_decomposed::embedding_byte.out"},
    {{kTensor, kTensor, kOptionalTensor, kIntList, kIntList, kIntList, kBool, kIntList, kInt, kOut, kReturn},
     "aten::convolution.out"},
    {{kTensor, kTensor, kOptionalTensor, kIntList, kIntList, kIntList, kInt, kInt, kInt, kTensor, kTensor,
      kInt, kInt, kTensor, kOut, kReturn},
     "cortex_m::quantized_depthwise_conv2d.out cortex_m::quantized_depthwise_conv2d_nhwc.out"},
    {{kTensor, kTensor, kOptionalTensor, kIntList, kIntList, kIntList, kInt, kInt, kTensor, kTensor, kInt,
      kInt, kTensor, kOut, kReturn},
     "cortex_m::quantized_conv2d.out cortex_m::quantized_conv2d_nhwc.out"},
    {{kTensor, kTensor, kOptionalTensor, kIntList, kIntList, kIntList, kIntList, kInt, kInt, kTensor, kTensor,
      kInt, kInt, kTensor, kTensor, kOut, kReturn},
     "cortex_m::quantized_transpose_conv2d.out cortex_m::quantized_transpose_conv2d_nhwc.out"},
    {{kTensor, kTensor, kOptionalTensor, kOptionalTensor, kInt, kInt, kInt, kIntList, kIntList, kInt, kInt,
      kOut, kReturn},
     "cortex_m::quantized_linear.out"},
    {{kTensor, kTensor, kOptionalTensor, kOut, kReturn}, "aten::linear.out"},
    {{kTensor, kTensor, kOut, kReturn},
     "aten::atan2.out aten::bitwise_and.Tensor_out aten::bitwise_left_shift.Tensor_out "
     "aten::bitwise_or.Tensor_out aten::bitwise_right_shift.Tensor_out aten::bitwise_xor.Tensor_out "
     "aten::bmm.out aten::div.out aten::eq.Tensor_out aten::fill.Tensor_out aten::floor_divide.out "
     "aten::fmod.Tensor_out aten::ge.Tensor_out aten::gt.Tensor_out aten::le.Tensor_out "
     "aten::logical_and.out aten::logical_or.out aten::logical_xor.out aten::lt.Tensor_out "
     "aten::masked_select.out aten::maximum.out aten::minimum.out aten::mm.out aten::mul.out "
     "aten::ne.Tensor_out aten::pow.Tensor_Tensor_out aten::remainder.Tensor_out cortex_m::maximum.out "
     "cortex_m::minimum.out cortex_m::quantized_activation.out"},
    {{kTensor, kTensor, kScalar, kOut, kReturn}, "aten::add.out aten::masked_fill.Scalar_out aten::sub.out"},
    {{kTensor, kTensor, kTensor, kInt, kInt, kInt, kInt, kOut, kReturn},
     "quantized_decomposed::dequantize_per_token.out quantized_decomposed::quantize_per_channel.out"},
    {{kTensor, kTensor, kTensor, kInt, kInt, kInt, kOptionalInt, kOut, kReturn},
     "quantized_decomposed::dequantize_per_tensor.Tensor_out"},
    {{kTensor, kTensor, kTensor, kInt, kInt, kInt, kOut, kReturn},
     "quantized_decomposed::quantize_per_tensor.Tensor_out quantized_decomposed::quantize_per_token.out"},
    {{kTensor, kTensor, kTensor, kInt, kOptionalTensor, kDouble, kBool, kOptionalDouble, kOptionalTensor,
      kOptionalTensor, kOptionalTensor, kOptionalTensor, kOptionalTensor, kOptionalTensor, kBool, kOut,
      kReturn},
     "llama::custom_quantized_sdpa.out"},
    {{kTensor, kTensor, kTensor, kInt, kOptionalTensor, kDouble, kBool, kOptionalDouble, kOut, kReturn},
     "llama::custom_sdpa.out"},
    {{kTensor, kTensor, kTensor, kOptionalIntList, kIntList, kIntList, kIntList, kBool, kIntList, kInt,
      kBoolList, kOut, kOut, kOut, kReturn},
     "aten::convolution_backward.out"},
    {{kTensor, kTensor, kTensor, kOptionalTensor, kOptionalInt, kOut, kReturn},
     "quantized_decomposed::mixed_linear.out"},
    {{kTensor, kTensor, kTensor, kOptionalTensor, kOut, kReturn}, "quantized_decomposed::mixed_mm.out"},
    {{kTensor, kTensor, kTensor, kOut, kOut, kInt, kInt, kOptionalTensor, kDouble, kBool, kOptionalDouble,
      kOut, kReturn},
     "llama::sdpa_with_kv_cache.out"},
    {{kTensor, kTensor, kTensor, kOut, kReturn}, "aten::masked_scatter.out aten::where.self_out"},
    {{kTensor, kTensor, kTensor, kScalar, kScalar, kOut, kReturn}, "aten::addmm.out"},
    {{kTensor, kTensor, kTensor, kTensor, kTensor, kInt, kInt, kInt, kInt, kInt, kInt, kString, kDouble, kOut,
      kReturn},
     "llama::quantized_moe_ffn.out"},
    {{kTensor, kTensor, kTensor, kTensor, kTensor, kTensor, kOut, kOut, kReturn},
     "llama::channelwise_gated_delta_rule.out llama::gated_delta_rule.out"},
    {{kTensorList, kInt, kOut, kReturn}, "aten::cat.out aten::stack.out"},
};

}  // namespace signatures

const std::span<const OperatorSignature> kOperatorSignatures = signatures::kSignatures;

}  // namespace etstream
