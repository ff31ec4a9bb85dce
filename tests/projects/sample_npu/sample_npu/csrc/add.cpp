#include "operators.h"

#include "sample/checked.h"

namespace sample {

std::int64_t add(std::int64_t left, std::int64_t right) {
  return checked(left + right);
}

std::int64_t subtract(std::int64_t left, std::int64_t right) {
  return checked(left - right);
}

}  // namespace sample
