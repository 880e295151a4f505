/* kernel_model_convert.c: numbers converted from one element type to another, as PyTorch's copies
 * do.
 *
 * Integers keep all 64 bits, floating-point numbers go through double; narrowing rounds to nearest
 * even (IEEE 754). Thread rule: none. Failure rule: out-of-range values become the smallest
 * integer.
 */
#include "kernel_model_parts.h"

#include <string.h>

/* A number wide enough for every type that PyTorch converts between. */
struct number {
    double real;
    int64_t whole;
    bool is_whole;
};

static float widen_half(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31, rest = half & 1023;
    float value;
    uint32_t bits;
    if (exponent == 0) {
        value = (float)rest / 16777216.0f; /* subnormal: rest * 2^-24 */
        return sign ? -value : value;
    }
    bits = sign | (exponent == 31 ? 0x7F800000u : (exponent + 112) << 23) | rest << 13;
    memcpy(&value, &bits, 4);
    return value;
}

/* Round to nearest even from a float's bits, keeping `drop` bits less. */
static uint32_t round_off(uint32_t bits, unsigned drop)
{
    uint32_t half = 1u << (drop - 1), odd = bits >> drop & 1;
    return (bits + half - 1 + odd) >> drop;
}

static uint16_t narrow_half(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, 4);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    bits &= 0x7FFFFFFF;
    if (bits > 0x7F800000)
        return sign | 0x7E00;
    if (bits >= 0x477FF000)
        return sign | 0x7C00;
    if (bits < 0x38800000) { /* below 2^-14: subnormal */
        float scaled;
        memcpy(&scaled, &bits, 4);
        scaled *= 16777216.0f;
        uint32_t whole = (uint32_t)scaled;
        float rest = scaled - (float)whole;
        whole += rest > 0.5f || (rest == 0.5f && (whole & 1));
        return (uint16_t)(sign | whole);
    }
    return (uint16_t)(sign | round_off(bits - 0x38000000, 13));
}

static uint16_t narrow_brain(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return (bits & 0x7FFFFFFF) > 0x7F800000 ? 0x7FC0 : (uint16_t)round_off(bits, 16);
}

static struct number load(const char *from, enum sim_type type)
{
    struct number n = {.is_whole = true};
    float single;
    uint32_t bits;
    uint16_t half;
    memcpy(&half, from, type == SIM_TYPE_F16 || type == SIM_TYPE_BF16 ? 2 : 0);
    switch (type) {
    case SIM_TYPE_BOOL:
    case SIM_TYPE_U8:
        n.whole = *(const uint8_t *)from;
        break;
    case SIM_TYPE_I8:
        n.whole = *(const int8_t *)from;
        break;
    case SIM_TYPE_I16: {
        int16_t value;
        memcpy(&value, from, 2);
        n.whole = value;
        break;
    }
    case SIM_TYPE_I32: {
        int32_t value;
        memcpy(&value, from, 4);
        n.whole = value;
        break;
    }
    case SIM_TYPE_I64:
        memcpy(&n.whole, from, 8);
        break;
    case SIM_TYPE_F64:
    case SIM_TYPE_C128:
        n.is_whole = false;
        memcpy(&n.real, from, 8);
        return n;
    case SIM_TYPE_F16:
        n.is_whole = false;
        n.real = (double)widen_half(half);
        return n;
    case SIM_TYPE_BF16:
        n.is_whole = false;
        bits = (uint32_t)half << 16;
        memcpy(&single, &bits, 4);
        n.real = (double)single;
        return n;
    default:
        n.is_whole = false;
        memcpy(&single, from, 4);
        n.real = (double)single;
        return n;
    }
    n.real = (double)n.whole;
    return n;
}

static void store(char *to, enum sim_type type, struct number n)
{
    float single = (float)n.real;
    int64_t whole = n.is_whole                            ? n.whole
                    : n.real > -9.2e18 && n.real < 9.2e18 ? (int64_t)n.real
                                                          : INT64_MIN;
    uint16_t half;
    switch (type) {
    case SIM_TYPE_BOOL:
        *to = n.is_whole ? n.whole != 0 : n.real != 0;
        break;
    case SIM_TYPE_F64:
        memcpy(to, &n.real, 8);
        break;
    case SIM_TYPE_F32:
        memcpy(to, &single, 4);
        break;
    case SIM_TYPE_F16:
        half = narrow_half(single);
        memcpy(to, &half, 2);
        break;
    case SIM_TYPE_BF16:
        half = narrow_brain(single);
        memcpy(to, &half, 2);
        break;
    default:
        memcpy(to, &whole, sim_type_bytes(type));
    }
}

void sim_convert(char *to, enum sim_type to_type, const char *from, enum sim_type from_type)
{
    store(to, to_type, load(from, from_type));
}
