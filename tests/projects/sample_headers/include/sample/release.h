#pragma once

#define SAMPLE_HEADERS_RELEASE 1
