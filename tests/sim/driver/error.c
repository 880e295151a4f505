/* error.c: names and texts of result codes. The table is errors.def.
 *
 * Thread rule: none needed. Failure rule: an unknown code answers INVALID_VALUE and NULL
 * (CUDA Driver API, cuGetErrorName).
 */
#include "entry.h"

#include <string.h>

static const struct {
    CUresult code;
    const char *name, *text;
} errors[] = {
#define ERROR(name, text) {name, #name, text},
#include "errors.def"
#undef ERROR
};

#define COUNT (sizeof(errors) / sizeof(errors[0]))

CUresult drv_cuGetErrorName(CUresult error, const char **name)
{
    for (size_t i = 0; i < COUNT; i++) {
        if (errors[i].code == error) {
            *name = errors[i].name;
            return CUDA_SUCCESS;
        }
    }
    *name = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult drv_cuGetErrorString(CUresult error, const char **text)
{
    for (size_t i = 0; i < COUNT; i++) {
        if (errors[i].code == error) {
            *text = errors[i].text;
            return CUDA_SUCCESS;
        }
    }
    *text = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}

bool sim_error_of_name(const char *name, CUresult *error)
{
    for (size_t i = 0; i < COUNT; i++) {
        if (strcmp(errors[i].name, name) == 0) {
            *error = errors[i].code;
            return true;
        }
    }
    return false;
}
