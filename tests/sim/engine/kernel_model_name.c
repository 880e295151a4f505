/* kernel_model_name.c: a mangled kernel name, taken apart.
 *
 * The C++ runtime's demangler (Itanium C++ ABI, __cxa_demangle) spells the substituted parameter
 * types; it is looked up at run time, so that C programs need no C++ library. A pointer to const is
 * an input, another pointer an output.
 * Thread rule: a mutex around the table of names. Failure rule: NULL, the kernel stays unknown.
 */
#include "kernel_model_parts.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

size_t sim_type_bytes(enum sim_type type)
{
    static const uint8_t bytes[] = {
        [SIM_TYPE_NONE] = 4, [SIM_TYPE_BOOL] = 1, [SIM_TYPE_U8] = 1,  [SIM_TYPE_I8] = 1,
        [SIM_TYPE_I16] = 2,  [SIM_TYPE_I32] = 4,  [SIM_TYPE_I64] = 8, [SIM_TYPE_F16] = 2,
        [SIM_TYPE_BF16] = 2, [SIM_TYPE_F32] = 4,  [SIM_TYPE_F64] = 8, [SIM_TYPE_C64] = 8,
        [SIM_TYPE_C128] = 16};
    return bytes[type];
}

enum sim_type sim_type_of_scalar(int scalar_type)
{
    static const uint8_t types[] = {
        [0] = SIM_TYPE_U8,  [1] = SIM_TYPE_I8,    [2] = SIM_TYPE_I16,   [3] = SIM_TYPE_I32,
        [4] = SIM_TYPE_I64, [5] = SIM_TYPE_F16,   [6] = SIM_TYPE_F32,   [7] = SIM_TYPE_F64,
        [9] = SIM_TYPE_C64, [10] = SIM_TYPE_C128, [11] = SIM_TYPE_BOOL, [15] = SIM_TYPE_BF16};
    return scalar_type >= 0 && scalar_type < 16 ? types[scalar_type] : SIM_TYPE_NONE;
}

enum sim_type sim_type_of_text(const char *text)
{
    static const struct {
        const char *text;
        enum sim_type type;
    } known[] = {
        {"float", SIM_TYPE_F32},
        {"double", SIM_TYPE_F64},
        {"c10::Half", SIM_TYPE_F16},
        {"c10::BFloat16", SIM_TYPE_BF16},
        {"bool", SIM_TYPE_BOOL},
        {"int", SIM_TYPE_I32},
        {"long", SIM_TYPE_I64},
        {"unsigned char", SIM_TYPE_U8},
        {"signed char", SIM_TYPE_I8},
        {"char", SIM_TYPE_I8},
        {"short", SIM_TYPE_I16},
        {"unsigned int", SIM_TYPE_I32},
        {"unsigned long", SIM_TYPE_I64},
        {"unsigned short", SIM_TYPE_I16},
        {"c10::complex<float>", SIM_TYPE_C64},
        {"c10::complex<double>", SIM_TYPE_C128},
    };
    if (strncmp(text, "const ", 6) == 0)
        text += 6;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        size_t length = strlen(known[i].text);
        if (strncmp(text, known[i].text, length) == 0 &&
            !strchr("_:<abcdefghijklmnopqrstuvwxyz", text[length] ? text[length] : ','))
            return known[i].type;
    }
    return SIM_TYPE_NONE;
}

/* --- brackets --- */

const char *sim_skip_bracket(const char *text)
{
    int depth = 0;
    for (const char *c = text; *c; c++) {
        if (*c == '<' || *c == '(' || *c == '[' || *c == '{')
            depth++;
        else if ((*c == '>' && c > text && c[-1] != '-') || *c == ')' || *c == ']' || *c == '}')
            if (--depth == 0)
                return c + 1;
    }
    return NULL;
}

const char *sim_template_argument(const char *templates, unsigned index)
{
    const char *c = templates;
    while (*c && index) {
        if (*c == '<' || *c == '(' || *c == '[' || *c == '{') {
            c = sim_skip_bracket(c);
            if (!c)
                return "";
            continue;
        }
        if (*c == '>' || *c == ')' || *c == ']' || *c == '}')
            return ""; /* the list ends before that argument */
        if (*c == ',')
            index--;
        c++;
    }
    while (*c == ' ')
        c++;
    return c;
}

/* The bracket that opens the one ending at `close`, going backwards. */
static char *open_of(char *text, char *close)
{
    int depth = 0;
    for (char *c = close; c >= text; c--) {
        if ((*c == '>' && c > text && c[-1] != '-') || *c == ')' || *c == ']' || *c == '}')
            depth++;
        else if (*c == '<' || *c == '(' || *c == '[' || *c == '{')
            if (--depth == 0)
                return c;
    }
    return NULL;
}

/* --- parameters --- */

static void parse_struct(struct sim_parameter *p, const char *open)
{
    p->type = (uint8_t)sim_type_of_text(open);
    p->constant = strncmp(sim_template_argument(open, 0), "const ", 6) == 0;
    const char *comma = sim_template_argument(open, 1);
    if (*comma)
        p->constant |= memmem(open, (size_t)(comma - open), " const", 6) != NULL;
    const char *index = p->kind == SIM_PARAMETER_ACCESSOR ? sim_template_argument(open, 3) : comma;
    if (p->kind == SIM_PARAMETER_ACCESSOR)
        p->dims = (uint8_t)atoi(comma);
    p->index_bytes = (uint8_t)sim_type_bytes(sim_type_of_text(index));
}

static void parse_parameter(struct sim_parameter *p, const char *text, size_t length)
{
    static const char accessor[] = "at::GenericPackedTensorAccessor<";
    static const char info[] = "at::cuda::detail::TensorInfo<";
    memset(p, 0, sizeof(*p));
    p->text = text;
    if (strncmp(text, accessor, sizeof(accessor) - 1) == 0) {
        p->kind = SIM_PARAMETER_ACCESSOR;
        parse_struct(p, text + sizeof(accessor) - 1);
    } else if (strncmp(text, info, sizeof(info) - 1) == 0) {
        p->kind = SIM_PARAMETER_INFO;
        parse_struct(p, text + sizeof(info) - 1);
    } else if (length && text[length - 1] == '*') {
        p->kind = SIM_PARAMETER_POINTER;
        p->constant = memmem(text, length, " const*", 7) || strncmp(text, "const ", 6) == 0;
        p->type = (uint8_t)sim_type_of_text(text);
    } else if (sim_type_of_text(text) != SIM_TYPE_NONE && !memchr(text, ':', length)) {
        p->kind = SIM_PARAMETER_NUMBER;
        p->type = (uint8_t)sim_type_of_text(text);
    }
}

static void parse_parameters(struct sim_signature *s, char *list)
{
    for (unsigned i = 0; i < SIM_MAX_PARAMETERS; i++) {
        const char *text = sim_template_argument(list, i);
        if (!*text || *text == ')')
            break;
        const char *end = sim_template_argument(list, i + 1);
        size_t length = *end ? (size_t)(end - text) : strlen(text);
        while (length && (text[length - 1] == ' ' || text[length - 1] == ','))
            length--;
        parse_parameter(&s->parameters[s->count++], text, length);
    }
}

/* text: "void at::native::f<float>(float*, int)", cut into its parts. */
static bool take_apart(struct sim_signature *s)
{
    size_t length = strlen(s->text);
    if (length == 0 || s->text[length - 1] != ')')
        return false;
    char *open = open_of(s->text, s->text + length - 1);
    if (!open || open == s->text)
        return false;
    s->text[length - 1] = '\0';
    parse_parameters(s, open + 1);
    char *end = open; /* one past the name or its template arguments */
    s->templates = open + strlen(open);
    if (end[-1] == '>') {
        char *angle = open_of(s->text, end - 1);
        if (!angle)
            return false;
        end[-1] = '\0';
        s->templates = angle + 1;
        end = angle;
    }
    *end = '\0';
    s->name = end;
    while (s->name > s->text && s->name[-1] != ':' && s->name[-1] != ' ')
        s->name--;
    return true;
}

/* --- the table of names --- */

#define TABLE_SIZE 8192

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry {
    const char *mangled;
    struct sim_signature *signature;
} table[TABLE_SIZE];
static unsigned used;

static uint64_t hash_text(const char *text)
{
    uint64_t hash = 0xCBF29CE484222325u;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001B3u;
    return hash;
}

static char *demangle(const char *mangled)
{
    static char *(*cxa_demangle)(const char *, char *, size_t *, int *);
    if (!cxa_demangle) {
        void *handle = dlopen("libstdc++.so.6", RTLD_LAZY);
        if (handle)
            *(void **)&cxa_demangle = dlsym(handle, "__cxa_demangle");
    }
    int status = 0;
    return cxa_demangle ? cxa_demangle(mangled, NULL, NULL, &status) : NULL;
}

static struct sim_signature *make(const char *mangled, uint64_t salt)
{
    struct sim_signature *s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    s->mangled = mangled;
    s->salt = salt;
    s->text = demangle(mangled);
    if (s->text && take_apart(s))
        return s;
    free(s->text);
    free(s);
    return NULL;
}

const struct sim_signature *sim_signature_of(const char *mangled)
{
    uint64_t hash = hash_text(mangled);
    struct sim_signature *found = NULL;
    pthread_mutex_lock(&lock);
    size_t slot = hash & (TABLE_SIZE - 1);
    while (table[slot].mangled && strcmp(table[slot].mangled, mangled) != 0)
        slot = (slot + 1) & (TABLE_SIZE - 1);
    if (table[slot].mangled) {
        found = table[slot].signature;
    } else if (used < TABLE_SIZE / 2) {
        char *copy = strdup(mangled);
        if (copy) {
            used++;
            found = make(copy, hash);
            table[slot] = (struct entry){copy, found};
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}
