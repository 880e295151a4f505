/* lifecycle.h: when the library acts: loaded, armed, off.
 *
 * The constructor reads the environment and returns. The library arms at the first driver call that
 * needs a context, on the application's thread; threads that meet the arming pass through. A forked
 * child of an armed process is off until it executes another program, since CUDA does not survive a
 * fork. Failure rule: off means every hook calls the real function and nothing else.
 */
#ifndef GB_LIFECYCLE_H
#define GB_LIFECYCLE_H

#include "base/gb.h"

enum gb_state { GB_STATE_NEW, GB_STATE_IDLE, GB_STATE_ARMING, GB_STATE_ARMED, GB_STATE_OFF };
extern uint32_t gb_state;

bool gb_lifecycle_arm(void);

/* May a hook account and act? Arms when it is time. */
static inline bool gb_armed(void)
{
    uint32_t state = __atomic_load_n(&gb_state, __ATOMIC_RELAXED);
    return GB_LIKELY(state == GB_STATE_ARMED) || (state != GB_STATE_OFF && gb_lifecycle_arm());
}

/* Is the library switched off in this process? Works before the constructor has run. */
bool gb_lifecycle_off(void);

#endif
