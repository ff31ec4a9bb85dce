#include "operators.h"

#include "sample/release.h"

namespace sample {

std::string build_info() {
  return "sample_npu " SAMPLE_NPU_VERSION ", built on " __DATE__;
}

int headers_release() {
  return SAMPLE_HEADERS_RELEASE;
}

}  // namespace sample
