/* place.c: where a site is, in words. See place.h for the rules. */
#include "stack/place.h"

#include "stack/native_stack.h"

#include <string.h>

#define BRIEF_PATH_BYTES 32

static bool is_library_code(const char *file)
{
    static const char *const marks[] = {"/site-packages/", "/dist-packages/", "/lib/python3",
                                        "/lib64/python3"};
    for (size_t i = 0; i < GB_ARRAY_LEN(marks); i++)
        if (strstr(file, marks[i]))
            return true;
    return strncmp(file, "<frozen ", 8) == 0;
}

int gb_place_pick(const struct gb_pyframe *frames, int count)
{
    for (int i = 0; i < count; i++)
        if (!is_library_code(frames[i].file))
            return i;
    return 0;
}

static void add_frame(struct gb_text *t, const struct gb_pyframe *frame, bool brief)
{
    const char *file = frame->file, *slash = strrchr(file, '/');
    if (brief && slash && strlen(file) > BRIEF_PATH_BYTES)
        file = slash + 1;
    gb_text_add_clean(t, file);
    if (frame->line >= 0)
        gb_text_add(t, ":%d", frame->line);
    if (*frame->func) {
        gb_text_add(t, " (");
        gb_text_add_clean(t, frame->func);
        gb_text_add(t, ")");
    }
}

void gb_place_add(struct gb_text *t, const struct gb_site *site, bool brief)
{
    struct gb_pyframe frames[GB_PYSTACK_MAX_FRAMES];
    int count =
        site->stack_id ? gb_pystack_frames(site->stack_id, frames, GB_PYSTACK_MAX_FRAMES) : 0;
    if (site->id == 0) {
        gb_text_add(t, "(places beyond the table of %d)", GB_SITE_MAX);
    } else if (count > 0) {
        add_frame(t, &frames[gb_place_pick(frames, count)], brief);
    } else if (site->native_count) {
        char name[160];
        gb_native_frame_name(site->native_pcs[0], name, sizeof name);
        gb_text_add_clean(t, name);
    } else {
        gb_text_add_clean(t, *site->module ? site->module : "(unknown place)");
    }
}
