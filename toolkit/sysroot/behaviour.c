/* The part of the stand-in CANN runtime that behaves.
 *
 * Every other entry is generated as a weak function that returns 0; a definition here is strong and wins at link
 * time. An entry belongs here when its caller reads something that the call was to write, needs a handle that is not
 * null, or when the launches that follow can only be understood from what it records. Device memory is host memory,
 * and every stream runs to its end inside the call that feeds it. Nothing computes: a kernel launch is recorded and
 * otherwise ignored, so the contents of a tensor after a launch mean nothing.
 *
 * Written without CANN's headers, so that one source serves every release; the layouts that it relies on are the
 * ones in the wheel's own include/third_party/acl/inc/acl/acl_rt.h (torch_npu 2.13.0) and are named where used.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

typedef int aclError;
typedef void *handle_t;

enum { OK = 0, INVALID_PARAM = 100000, BAD_ALLOC = 200000, FAILURE = 500001 };

/* ---- The machine that is pretended: one Ascend 910B3. Other SoC names select other code in torch_npu. ---- */

enum { DEVICES = 1, CUBE_CORES = 20, VECTOR_CORES = 40, UNIFIED_BUFFER = 192 * 1024, ARCH_910B = 2201 };
static const uint64_t DEVICE_MEMORY = (uint64_t)64 << 30;
static const uint64_t L2_CACHE = (uint64_t)192 << 20;
#define SOC_NAME "Ascend910B3"
#define CANN_VERSION "9.1.0"
#define DRIVER_VERSION "25.5.0"

static _Thread_local int32_t current_device;

aclError aclrtGetDeviceCount(uint32_t *count) { *count = DEVICES; return OK; }
aclError aclrtSetDevice(int32_t device) { current_device = device; return OK; }
aclError aclrtGetDevice(int32_t *device) { *device = current_device; return OK; }
const char *aclrtGetSocName(void) { return SOC_NAME; }

aclError aclrtGetLogicDevIdByUserDevId(int32_t user, int32_t *logic) { *logic = user; return OK; }
aclError aclrtDeviceCanAccessPeer(int32_t *can, int32_t device, int32_t peer) { *can = device != peer; return OK; }
aclError aclrtDeviceGetBareTgid(int32_t *pid) { *pid = (int32_t)getpid(); return OK; }

aclError aclrtGetPrimaryCtxState(int32_t device, uint32_t *flags, int32_t *active)
{
    (void)device;
    if (flags) *flags = 0;
    *active = 1;
    return OK;
}

/* aclrtDevAttr. Unknown attributes are 0, which callers take as "not there". DVM divides work by the core counts. */
aclError aclrtGetDeviceInfo(uint32_t device, int attribute, int64_t *value)
{
    (void)device;
    switch (attribute) {
    case 101: case 102: *value = CUBE_CORES; break;
    case 201: *value = VECTOR_CORES; break;
    case 204: *value = UNIFIED_BUFFER; break;
    case 301: *value = (int64_t)DEVICE_MEMORY; break;
    case 302: *value = (int64_t)L2_CACHE; break;
    case 601: *value = ARCH_910B; break;
    default: *value = 0;
    }
    return OK;
}

/* aclDeviceInfo: the older way to ask for the same. */
aclError aclGetDeviceCapability(uint32_t device, int info, int64_t *value)
{
    (void)device;
    *value = info == 0 ? CUBE_CORES : info == 1 ? VECTOR_CORES : info == 2 ? (int64_t)L2_CACHE : 0;
    return OK;
}

/* aclrtUuid: 16 bytes. */
aclError aclrtDeviceGetUuid(int32_t device, char *uuid)
{
    memset(uuid, 0, 16);
    snprintf(uuid, 16, "host-sysroot-%d", (int)(device & 7));
    return OK;
}

/* aclrtUtilizationInfo: four int32 and a pointer; nothing is ever busy. */
aclError aclrtGetDeviceUtilizationRate(int32_t device, int32_t *rates)
{
    (void)device;
    memset(rates, 0, 4 * sizeof *rates);
    return OK;
}

/* aclrtDevResLimitType: 0 cube cores, 1 vector cores. A limit of 0 would mean that no core may be used. */
static aclError cores(int type, uint32_t *value) { *value = type == 0 ? CUBE_CORES : VECTOR_CORES; return OK; }
aclError aclrtGetDeviceResLimit(int32_t device, int type, uint32_t *value) { (void)device; return cores(type, value); }
aclError aclrtGetStreamResLimit(handle_t stream, int type, uint32_t *value) { (void)stream; return cores(type, value); }
aclError aclrtGetResInCurrentThread(int type, uint32_t *value) { return cores(type, value); }

/* ---- Versions, options and messages: strings that callers read from a buffer or pointer. ---- */

/* aclCANNPackageVersion: version[128], major[64], minor[64], release[64], patch[64], reserved[128]. */
aclError aclsysGetCANNVersion(int package, char *version)
{
    (void)package;
    memset(version, 0, 128 + 4 * 64 + 128);
    strcpy(version, CANN_VERSION);
    strcpy(version + 128, "9");
    strcpy(version + 192, "1");
    strcpy(version + 256, "0");
    return OK;
}

aclError aclsysGetVersionStr(const char *package, char *version)
{
    strcpy(version, package && strstr(package, "driver") ? DRIVER_VERSION : CANN_VERSION);
    return OK;
}

/* A null message is formatted with %s by torch_npu's own error path. */
const char *aclGetRecentErrMsg(void) { return ""; }

/* aclCompileOpt: torch_npu allocates what the first call says and reads a C string from the second. */
size_t aclGetCompileoptSize(int option) { (void)option; return 16; }
aclError aclGetCompileopt(int option, char *value, size_t length)
{
    (void)option;
    snprintf(value, length, "disable");
    return OK;
}

/* aclCannAttr: infinities kept, bfloat16 there; 910B has both. */
aclError aclGetCannAttribute(int attribute, int32_t *value) { (void)attribute; *value = 1; return OK; }
aclError aclGetCannAttributeList(const int **list, size_t *count)
{
    static const int attributes[] = {0, 1};
    *list = attributes;
    *count = 2;
    return OK;
}

aclError aclrtGetSysParamOpt(int option, int64_t *value) { (void)option; *value = 0; return OK; }
aclError aclrtGetStreamOverflowSwitch(handle_t stream, uint32_t *flag) { (void)stream; *flag = 0; return OK; }

/* Bounds-checked functions of CANN's C library that torchair formats its messages with. */
int vsnprintf_s(char *to, size_t size, size_t count, const char *format, va_list values)
{
    return vsnprintf(to, count < size ? count + 1 : size, format, values);
}

int snprintf_s(char *to, size_t size, size_t count, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    int written = vsnprintf_s(to, size, count, format, values);
    va_end(values);
    return written;
}

int strcpy_s(char *to, size_t size, const char *from)
{
    if (!to || !from || strlen(from) >= size) return EINVAL;
    strcpy(to, from);
    return OK;
}

/* ---- Handles: a caller refuses null, and may ask a handle for its number. ---- */

struct numbered { int32_t id; uint64_t microseconds; };

static aclError new_handle(handle_t *handle)
{
    static int32_t last;
    struct numbered *made = calloc(1, sizeof *made);
    if (!made) return BAD_ALLOC;
    made->id = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
    *handle = made;
    return OK;
}

static aclError drop_handle(handle_t handle) { free(handle); return OK; }

aclError aclrtCreateContext(handle_t *context, int32_t device) { (void)device; return new_handle(context); }
aclError aclrtGetCurrentContext(handle_t *context)
{
    static struct numbered only;
    *context = &only;
    return OK;
}

aclError aclrtCreateStream(handle_t *stream) { return new_handle(stream); }
aclError aclrtCreateStreamV2(handle_t *stream, void *config) { (void)config; return new_handle(stream); }
aclError aclrtCreateStreamWithConfig(handle_t *stream, uint32_t priority, uint32_t flag)
{
    (void)priority, (void)flag;
    return new_handle(stream);
}
aclError aclrtDestroyStream(handle_t stream) { return drop_handle(stream); }
aclError aclrtDestroyStreamForce(handle_t stream) { return drop_handle(stream); }
aclError aclrtStreamGetId(handle_t stream, int32_t *id)
{
    *id = stream ? ((struct numbered *)stream)->id : 0;
    return OK;
}
aclError aclrtStreamQuery(handle_t stream, int *status) { (void)stream; *status = 0; /* complete */ return OK; }

/* aclmdlRICaptureStatus: no stream is ever captured into a graph. */
aclError aclmdlRICaptureGetInfo(handle_t stream, int *status, handle_t *model)
{
    (void)stream;
    *status = 0;
    if (model) *model = NULL;
    return OK;
}

/* ---- Events: work is over when its call returns, so an event is complete as soon as it exists. ---- */

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000;
}

aclError aclrtCreateEvent(handle_t *event) { return new_handle(event); }
aclError aclrtCreateEventWithFlag(handle_t *event, uint32_t flag) { (void)flag; return new_handle(event); }
aclError aclrtCreateEventExWithFlag(handle_t *event, uint32_t flag) { (void)flag; return new_handle(event); }
aclError aclrtDestroyEvent(handle_t event) { return drop_handle(event); }
aclError aclrtRecordEvent(handle_t event, handle_t stream)
{
    (void)stream;
    if (event) ((struct numbered *)event)->microseconds = now();
    return OK;
}
aclError aclrtQueryEvent(handle_t event, int *status) { (void)event; *status = 0; /* complete */ return OK; }
aclError aclrtQueryEventStatus(handle_t event, int *status) { (void)event; *status = 1; /* complete */ return OK; }
aclError aclrtQueryEventWaitStatus(handle_t event, int *status) { (void)event; *status = 0; return OK; }
aclError aclrtEventGetTimestamp(handle_t event, uint64_t *time)
{
    *time = ((struct numbered *)event)->microseconds;
    return OK;
}
aclError aclrtEventElapsedTime(float *milliseconds, handle_t start, handle_t end)
{
    uint64_t from = ((struct numbered *)start)->microseconds, to = ((struct numbered *)end)->microseconds;
    *milliseconds = to > from ? (float)(to - from) / 1000.0f : 0.0f;
    return OK;
}

/* Host functions run at once; the thread that waits for reports must not spin. */
aclError aclrtLaunchHostFunc(handle_t stream, void (*function)(void *), void *data)
{
    (void)stream;
    function(data);
    return OK;
}
aclError aclrtLaunchCallback(void (*function)(void *), void *data, int blocking, handle_t stream)
{
    (void)blocking;
    return aclrtLaunchHostFunc(stream, function, data);
}
aclError aclrtProcessReport(int32_t timeout) { (void)timeout; usleep(1000); return OK; }

/* ---- Live device memory: which ranges there are, so that a launch's words can be told to be addresses. ---- */

struct range { char *base; size_t size; };
static struct range *ranges;
static size_t range_count, range_room;
static uint64_t bytes_live;
static uint64_t records;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void take_lock(void) { pthread_mutex_lock(&lock); }
static void drop_lock(void) { pthread_mutex_unlock(&lock); }

/* A fork while another thread holds the lock would leave the child without anyone to release it. */
__attribute__((constructor)) static void survive_fork(void) { pthread_atfork(take_lock, drop_lock, drop_lock); }

static aclError add_range(char *base, size_t size)
{
    take_lock();
    if (range_count == range_room) {
        size_t room = range_room ? 2 * range_room : 64;
        struct range *grown = realloc(ranges, room * sizeof *grown);
        if (!grown) { drop_lock(); return BAD_ALLOC; }
        ranges = grown;
        range_room = room;
    }
    ranges[range_count++] = (struct range){base, size};
    bytes_live += size;
    drop_lock();
    return OK;
}

static void remove_range(const char *base)
{
    take_lock();
    for (size_t i = 0; i < range_count; i++) {
        if (ranges[i].base != base) continue;
        bytes_live -= ranges[i].size;
        ranges[i] = ranges[--range_count];
        break;
    }
    drop_lock();
}

/* Call with the lock held. */
static const struct range *find_range(uint64_t address)
{
    for (size_t i = 0; i < range_count; i++) {
        uint64_t base = (uint64_t)(uintptr_t)ranges[i].base;
        if (address >= base && address - base < ranges[i].size) return &ranges[i];
    }
    return NULL;
}

/* ---- Memory: device memory is host memory, aligned as torch_npu's allocator asserts (512 bytes). ---- */

static aclError allocate(void **pointer, size_t size)
{
    *pointer = NULL;
    return posix_memalign(pointer, 512, size ? size : 1) ? BAD_ALLOC : OK;
}

static aclError allocate_device(void **pointer, size_t size)
{
    aclError status = allocate(pointer, size);
    return status == OK ? add_range(*pointer, size) : status;
}

aclError aclrtMalloc(void **pointer, size_t size, int policy) { (void)policy; return allocate_device(pointer, size); }
aclError aclrtMallocAlign32(void **p, size_t size, int policy) { (void)policy; return allocate_device(p, size); }
aclError aclrtMallocCached(void **p, size_t size, int policy) { (void)policy; return allocate_device(p, size); }
aclError aclrtMallocWithCfg(void **pointer, size_t size, int policy, void *config)
{
    (void)policy, (void)config;
    return allocate_device(pointer, size);
}
aclError aclrtFree(void *pointer) { remove_range(pointer); free(pointer); return OK; }

aclError aclrtMallocHost(void **pointer, size_t size) { return allocate(pointer, size); }
aclError aclrtMallocHostWithCfg(void **p, uint64_t size, void *config) { (void)config; return allocate(p, size); }
aclError aclrtFreeHost(void *pointer) { free(pointer); return OK; }
aclError aclrtHostRegister(void *pointer, uint64_t size, int type, void **device)
{
    (void)size, (void)type;
    *device = pointer;
    return OK;
}

/* Expandable segments: an address range is reserved first and becomes device memory piece by piece. */
struct reservation { void *base; size_t size; struct reservation *next; };
static struct reservation *reservations;

aclError aclrtReserveMemAddress(void **pointer, size_t size, size_t alignment, void *expected, uint64_t flags)
{
    (void)alignment, (void)expected, (void)flags;
    struct reservation *made = malloc(sizeof *made);
    void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!made || base == MAP_FAILED) { free(made); return BAD_ALLOC; }
    take_lock();
    *made = (struct reservation){base, size, reservations};
    reservations = made;
    drop_lock();
    *pointer = base;
    return OK;
}

aclError aclrtReleaseMemAddress(void *pointer)
{
    take_lock();
    struct reservation **link = &reservations;
    while (*link && (*link)->base != pointer) link = &(*link)->next;
    struct reservation *found = *link;
    if (found) *link = found->next;
    drop_lock();
    if (found) munmap(found->base, found->size);
    free(found);
    return found ? OK : INVALID_PARAM;
}

aclError aclrtMallocPhysical(handle_t *handle, size_t size, const void *properties, uint64_t flags)
{
    (void)size, (void)properties, (void)flags;
    return new_handle(handle);
}
aclError aclrtFreePhysical(handle_t handle) { return drop_handle(handle); }
aclError aclrtMapMem(void *pointer, size_t size, size_t offset, handle_t handle, uint64_t flags)
{
    (void)offset, (void)handle, (void)flags;
    return add_range(pointer, size);
}
aclError aclrtUnmapMem(void *pointer) { remove_range(pointer); return OK; }

aclError aclrtGetMemUsageInfo(int32_t device, void *infos, size_t room, size_t *count)
{
    (void)device, (void)infos, (void)room;
    *count = 0;
    return OK;
}

aclError aclrtGetMemInfo(int kind, size_t *free_bytes, size_t *total)
{
    (void)kind;
    take_lock();
    *total = DEVICE_MEMORY;
    *free_bytes = bytes_live < DEVICE_MEMORY ? DEVICE_MEMORY - bytes_live : 0;
    drop_lock();
    return OK;
}

/* aclrtPtrAttributes: {uint32 device, int32 kind (0 host, 1 device, 2 unregistered)}, page size, rsv[4]. */
aclError aclrtPointerGetAttributes(const void *pointer, uint32_t *attributes)
{
    memset(attributes, 0, 7 * sizeof *attributes);
    take_lock();
    attributes[1] = find_range((uint64_t)(uintptr_t)pointer) ? 1 : 2;
    drop_lock();
    return OK;
}

/* ---- The launch log: one JSON line for each launch, fill and copy, in the order in which they were asked for. ---- */

struct line { char *text; size_t length, room; };

static void append(struct line *line, const char *format, ...)
{
    va_list values, again;
    va_start(values, format);
    va_copy(again, values);
    size_t more = (size_t)vsnprintf(NULL, 0, format, values);
    if (line->length + more + 1 > line->room) {
        size_t room = 2 * (line->length + more + 1);
        char *grown = realloc(line->text, room);
        if (!grown) abort();
        line->text = grown;
        line->room = room;
    }
    vsnprintf(line->text + line->length, more + 1, format, again);
    line->length += more;
    va_end(again);
    va_end(values);
}

static void append_string(struct line *line, const char *text)
{
    append(line, "\"");
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        append(line, c == '"' || c == '\\' ? "\\%c" : c < 32 ? "\\u%04x" : "%c", c);
    }
    append(line, "\"");
}

/* Read the variable at each record: a program may name its log after the runtime was loaded. */
static const char *log_path(void)
{
    const char *path = getenv("TOOLKIT_LAUNCH_LOG");
    return path && *path ? path : NULL;
}

static void begin_record(struct line *line, const char *kind)
{
    append(line, "{\"kind\": \"%s\", \"n\": %" PRIu64 ", \"pid\": %d", kind, records++, (int)getpid());
}

/* Opened each time and written whole with O_APPEND, so that forked processes never share or cut a line. A record
 * that cannot be written fails its call: a missing launch would be taken for a launch that did not happen. */
static aclError end_record(struct line *line)
{
    append(line, "}\n");
    int file = open(log_path(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    ssize_t written = file < 0 ? -1 : write(file, line->text, line->length);
    if (file >= 0) close(file);
    aclError status = written == (ssize_t)line->length ? OK : FAILURE;
    if (status != OK) fprintf(stderr, "host sysroot: cannot write %s: %s\n", log_path(), strerror(errno));
    free(line->text);
    return status;
}

static aclError record_fill(const void *to, size_t size, uint32_t value)
{
    if (!log_path()) return OK;
    struct line line = {0};
    take_lock();
    begin_record(&line, "memset");
    append(&line, ", \"address\": \"%" PRIx64 "\", \"size\": %zu, \"value\": %" PRIu32,
           (uint64_t)(uintptr_t)to, size, value);
    aclError status = end_record(&line);
    drop_lock();
    return status;
}

static aclError record_copy(const void *to, const void *from, size_t size)
{
    if (!log_path()) return OK;
    struct line line = {0};
    take_lock();
    begin_record(&line, "memcpy");
    append(&line, ", \"address\": \"%" PRIx64 "\", \"source\": \"%" PRIx64 "\", \"size\": %zu",
           (uint64_t)(uintptr_t)to, (uint64_t)(uintptr_t)from, size);
    aclError status = end_record(&line);
    drop_lock();
    return status;
}

static aclError fill(void *to, size_t room, int value, size_t size)
{
    if (size > room) return INVALID_PARAM;
    memset(to, value, size);
    return record_fill(to, size, (uint32_t)value & 0xff);
}

aclError aclrtMemset(void *to, size_t room, int32_t value, size_t size) { return fill(to, room, value, size); }
aclError aclrtMemsetAsync(void *to, size_t room, int32_t value, size_t size, handle_t stream)
{
    (void)stream;
    return fill(to, room, value, size);
}

static aclError copy(void *to, size_t room, const void *from, size_t size)
{
    if (size > room) return INVALID_PARAM;
    memmove(to, from, size);
    return record_copy(to, from, size);
}

aclError aclrtMemcpy(void *to, size_t room, const void *from, size_t size, int kind)
{
    (void)kind;
    return copy(to, room, from, size);
}
aclError aclrtMemcpyAsync(void *to, size_t room, const void *from, size_t size, int kind, handle_t stream)
{
    (void)kind, (void)stream;
    return copy(to, room, from, size);
}
aclError aclrtMemcpyAsyncWithCondition(void *to, size_t room, const void *from, size_t size, int kind, handle_t s)
{
    (void)kind, (void)s;
    return copy(to, room, from, size);
}
/* The attributes say where the ends lie; here all memory is one. `failed` is the index of the copy that failed. */
aclError aclrtMemcpyBatch(void **to, size_t *room, void **from, size_t *sizes, size_t count, void *attributes,
                          size_t *attribute_indexes, size_t attribute_count, size_t *failed)
{
    (void)attributes, (void)attribute_indexes, (void)attribute_count;
    for (size_t i = 0; i < count; i++) {
        aclError status = copy(to[i], room[i], from[i], sizes[i]);
        if (status == OK) continue;
        if (failed) *failed = i;
        return status;
    }
    return OK;
}
aclError aclrtMemcpyBatchAsync(void **to, size_t *room, void **from, size_t *sizes, size_t count, void *attributes,
                               size_t *attribute_indexes, size_t attribute_count, size_t *failed, handle_t stream)
{
    (void)stream;
    return aclrtMemcpyBatch(to, room, from, sizes, count, attributes, attribute_indexes, attribute_count, failed);
}
aclError aclrtMemcpy2d(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                       int kind)
{
    (void)kind;
    aclError status = OK;
    for (size_t row = 0; row < height && status == OK; row++)
        status = copy((char *)to + row * to_pitch, width, (const char *)from + row * from_pitch, width);
    return status;
}
aclError aclrtMemcpy2dAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                            size_t height, int kind, handle_t stream)
{
    (void)stream;
    return aclrtMemcpy2d(to, to_pitch, from, from_pitch, width, height, kind);
}

/* ---- Kernels: a function handle keeps its name, a launch writes its words. ---- */

struct function { const void *key; char *name; struct function *next; };
static struct function *functions;

static struct function *add_function(const void *key, const char *name)
{
    struct function *made = calloc(1, sizeof *made);
    if (!made || !(made->name = strdup(name ? name : ""))) { free(made); return NULL; }
    made->key = key ? key : made;
    take_lock();
    made->next = functions;
    functions = made;
    drop_lock();
    return made;
}

/* Call with the lock held. A handle is looked up and never followed: it may come from a stub. */
static const char *function_name(const void *key)
{
    for (struct function *f = functions; f; f = f->next)
        if (f->key == key) return f->name;
    return NULL;
}

aclError aclrtBinaryLoadFromData(const void *data, size_t length, const void *options, handle_t *binary)
{
    (void)data, (void)length, (void)options;
    return new_handle(binary);
}
aclError aclrtBinaryLoadFromFile(const char *path, const void *options, handle_t *binary)
{
    (void)path, (void)options;
    return new_handle(binary);
}
aclError aclrtBinaryGetFunction(handle_t binary, const char *name, handle_t *function)
{
    (void)binary;
    *function = add_function(NULL, name);
    return *function ? OK : BAD_ALLOC;
}
/* DVM takes the entry addresses to prefetch code; it only needs them not to be null. */
aclError aclrtGetFunctionAddr(handle_t function, void **cube, void **vector)
{
    *cube = *vector = function;
    return OK;
}

/* The runtime's older way: the caller's own stub address is the handle. */
aclError rtDevBinaryRegister(const void *binary, handle_t *handle) { (void)binary; return new_handle(handle); }
aclError rtFunctionRegister(handle_t binary, const void *stub, const char *name, const void *info, uint32_t mode)
{
    (void)binary, (void)info, (void)mode;
    return add_function(stub, name) ? OK : BAD_ALLOC;
}

/* Where mixed cube and vector kernels meet; the address goes into their arguments. */
static uint64_t meeting_point[512];
aclError aclrtGetHardwareSyncAddr(void **address) { *address = meeting_point; return OK; }
aclError rtGetC2cCtrlAddr(uint64_t *address, uint32_t *length)
{
    *address = (uint64_t)(uintptr_t)meeting_point;
    *length = sizeof meeting_point;
    return OK;
}

static uint64_t word_at(const void *words, size_t size, size_t index)
{
    uint64_t word = 0;
    size_t left = size - index * sizeof word;
    memcpy(&word, (const char *)words + index * sizeof word, left < sizeof word ? left : sizeof word);
    return word;
}

static void append_words(struct line *line, const void *words, size_t size)
{
    append(line, ", \"args\": [");
    for (size_t i = 0; i * sizeof(uint64_t) < size; i++)
        append(line, "%s\"%" PRIx64 "\"", i ? ", " : "", word_at(words, size, i));
    append(line, "], \"allocations\": [");
    const char *comma = "";
    for (size_t i = 0; i * sizeof(uint64_t) < size; i++) {
        uint64_t word = word_at(words, size, i);
        const struct range *range = find_range(word);
        if (!range) continue;
        uint64_t base = (uint64_t)(uintptr_t)range->base;
        append(line, "%s{\"word\": %zu, \"base\": \"%" PRIx64 "\", \"size\": %zu, \"offset\": %" PRIu64 "}",
               comma, i, base, range->size, word - base);
        comma = ", ";
    }
    append(line, "]");
}

static aclError record_launch(const void *function, uint32_t blocks, const void *words, size_t size)
{
    if (!log_path()) return OK;
    struct line line = {0};
    take_lock();
    begin_record(&line, "launch");
    const char *name = function_name(function);
    append(&line, ", \"handle\": \"%" PRIx64 "\", \"function\": ", (uint64_t)(uintptr_t)function);
    name ? append_string(&line, name) : append(&line, "null");
    append(&line, ", \"blocks\": %" PRIu32, blocks);
    append_words(&line, words, words ? size : 0);
    aclError status = end_record(&line);
    drop_lock();
    return status;
}

aclError aclrtLaunchKernelWithHostArgs(handle_t function, uint32_t blocks, handle_t stream, void *config, void *words,
                                       size_t size, void *placeholders, size_t placeholder_count)
{
    (void)stream, (void)config, (void)placeholders, (void)placeholder_count;
    return record_launch(function, blocks, words, size);
}
aclError aclrtLaunchKernel(handle_t function, uint32_t blocks, const void *words, size_t size, handle_t stream)
{
    (void)stream;
    return record_launch(function, blocks, words, size);
}
aclError aclrtLaunchKernelV2(handle_t function, uint32_t blocks, const void *words, size_t size, void *config,
                             handle_t stream)
{
    (void)config, (void)stream;
    return record_launch(function, blocks, words, size);
}
/* These two hand over no size, so the words stay unread and only the launch itself is recorded. */
aclError aclrtLaunchKernelWithConfig(handle_t function, uint32_t blocks, handle_t stream, void *config, handle_t args,
                                     void *reserved)
{
    (void)stream, (void)config, (void)args, (void)reserved;
    return record_launch(function, blocks, NULL, 0);
}
aclError aclrtLaunchKernelWithArgsArray(void *function, uint32_t blocks, handle_t stream, void *config, void **args)
{
    (void)stream, (void)config, (void)args;
    return record_launch(function, blocks, NULL, 0);
}
aclError rtKernelLaunch(const void *stub, uint32_t blocks, void *words, uint32_t size, void *memory, handle_t stream)
{
    (void)memory, (void)stream;
    return record_launch(stub, blocks, words, size);
}
