/* settings.h: the GPUSIM_* environment, read once.
 *
 * Thread rule: read-only after sim_settings_load. Failure rule: a bad value prints one line on
 * stderr and keeps the default.
 */
#ifndef SIM_SETTINGS_H
#define SIM_SETTINGS_H

enum sim_setting {
#define SETTING(name, type, fallback, help) SIM_SETTING_##name,
#include "settings.def"
#undef SETTING
    SIM_SETTING_COUNT
};

struct sim_setting_value {
    double number;
    const char *text;
};

extern struct sim_setting_value sim_setting_values[SIM_SETTING_COUNT];

#define SIM_NUMBER(name) (sim_setting_values[SIM_SETTING_##name].number)
#define SIM_TEXT(name)   (sim_setting_values[SIM_SETTING_##name].text)

void sim_settings_load(void);

#endif
