// SPDX-License-Identifier: BSD-3-Clause
#include "pte/delegate_verify.h"

#include "base/text.h"
#include "container/findings.h"
#include "pte/backend_payload.h"
#include "pte/xnnpack_payload.h"

namespace etstream {

Result<void> MethodDelegates::verify(MethodCalls& calls) {
  ETSTREAM_ASSIGN(const auto delegates, calls.method().delegates());
  ETSTREAM_ASSIGN(const std::string method, calls.method().name());
  arguments_.resize(delegates.size());
  for (std::uint32_t i = 0; i < delegates.size(); ++i) {
    ETSTREAM_ASSIGN(const pte::Delegate delegate, delegates.at(i));
    ETSTREAM_TRY(verify_compile_specs(calls, delegate));
    ETSTREAM_ASSIGN(const auto id, delegate.id());
    if (id && !is_utf8(*id)) calls.error(delegate, "a delegate's id in UTF-8", quote(*id));
    if (!id) continue;
    const std::string name =
        text("{}: method {}, delegate {} ({})", calls.program().name(), quote(method), i, printable(*id));
    ETSTREAM_ASSIGN(arguments_[i], verify_payload(calls, delegate, *id, name));
  }
  return {};
}

Result<void> MethodDelegates::verify_compile_specs(MethodCalls& calls, const pte::Delegate& delegate) {
  const auto& known = calls.known().compile_spec;
  ETSTREAM_ASSIGN(const auto specs, delegate.compile_specs());
  for (std::uint32_t i = 0; i < specs.size(); ++i) {
    ETSTREAM_ASSIGN(const pte::View spec, specs.at(i));
    for (const BoundField* field : {&known.key, &known.value}) {
      ETSTREAM_ASSIGN(const bool is_there, spec.has(*field));
      if (!is_there) calls.error(spec, field->full_name(), "none");
    }
  }
  return {};
}

Result<const std::vector<XnnpackArgument>*> MethodDelegates::verify_payload(MethodCalls& calls,
                                                                            const pte::Delegate& delegate,
                                                                            const std::string& id,
                                                                            const std::string& name) {
  ETSTREAM_ASSIGN(const auto data, delegate.data());
  ETSTREAM_ASSIGN(const bool in_segment, data->is_in_segment());
  ETSTREAM_ASSIGN(const std::uint32_t index, data->index());
  const auto [found, is_new] = payloads_.try_emplace({in_segment, index});
  const bool is_xnnpack = id == kXnnpackBackend;
  const auto* const arguments = is_xnnpack ? &found->second : nullptr;
  if (!is_new) return arguments;
  ETSTREAM_ASSIGN(const ByteSource payload,
                  calls.program().delegate_data(data->position(), in_segment, index));
  ETSTREAM_TRY(calls.budget().spend(payload.size()));
  if (is_xnnpack) {
    ETSTREAM_ASSIGN(found->second, verify_xnnpack(payload, name, calls.findings()));
    return arguments;
  }
  // Of backends whose data says which named data they take.
  const auto read = read_backend_payload(id, payload, name);
  if (!read && read.error().code != ErrorCode::kCorrupt) return read.error();
  if (!read) add_error(calls.findings(), read.error());
  return arguments;
}

}  // namespace etstream
