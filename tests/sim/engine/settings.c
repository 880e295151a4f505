/* settings.c: see settings.h. The table is settings.def. */
#include "settings.h"

#include "kernel_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum type { NUMBER, WORD, TEXT };

struct setting {
    const char *name, *fallback, *help;
    enum type type;
};

static const struct setting settings[SIM_SETTING_COUNT] = {
#define SETTING(name, type, fallback, help) {"GPUSIM_" #name, fallback, help, type},
#include "settings.def"
#undef SETTING
};

struct sim_setting_value sim_setting_values[SIM_SETTING_COUNT];

static int parse_number(const char *text, double *value)
{
    char *end;
    *value = strtod(text, &end);
    if (end == text)
        return 0;
    static const char units[] = "KMG";
    const char *unit = *end ? strchr(units, *end) : NULL;
    if (unit) {
        for (long power = unit - units + 1; power > 0; power--)
            *value *= 1024;
        end++;
    }
    return *end == 0;
}

static int is_word(const struct setting *setting, const char *text)
{
    size_t length = strlen(text);
    for (const char *at = strstr(setting->help, text); at; at = strstr(at + 1, text))
        if (length && at[length] == ':')
            return 1;
    return 0;
}

static int parse(const struct setting *setting, const char *text, struct sim_setting_value *value)
{
    value->text = text;
    if (setting->type == NUMBER)
        return parse_number(text, &value->number);
    return setting->type == TEXT || is_word(setting, text);
}

static void print_table(void)
{
    for (int i = 0; i < SIM_SETTING_COUNT; i++)
        fprintf(stderr, "%-30s %-8s %s\n", settings[i].name, settings[i].fallback,
                settings[i].help);
}

void sim_settings_load(void)
{
    for (int i = 0; i < SIM_SETTING_COUNT; i++) {
        const char *text = getenv(settings[i].name);
        if (text && parse(&settings[i], text, &sim_setting_values[i]))
            continue;
        if (text)
            fprintf(stderr, "gpusim: %s=%s is not valid, using %s\n", settings[i].name, text,
                    settings[i].fallback);
        parse(&settings[i], settings[i].fallback, &sim_setting_values[i]);
    }
    if (SIM_NUMBER(HELP) != 0)
        print_table();
}

double sim_setting_number(const char *name)
{
    for (int i = 0; i < SIM_SETTING_COUNT; i++)
        if (strcmp(settings[i].name, name) == 0)
            return sim_setting_values[i].number;
    return 0;
}
