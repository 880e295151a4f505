/* driver_api.h: driver functions that the library calls on its own behalf.
 *
 * Only from the application's thread inside a call of its own, never under `observe` unless the
 * current context is not known. Looked up once, at arm time. Failure rule: where one is missing
 * gb_driver_ready says no and every policy declines.
 */
#ifndef GB_DRIVER_API_H
#define GB_DRIVER_API_H

#include "cuda/hooks.h"

struct gb_driver_api {
#define GB_DRIVER_API(symbol, type) type symbol;
#include "cuda/driver_api.def"
};
extern struct gb_driver_api gb_driver;

/* Before any other thread may use them. */
void gb_driver_load(void);
bool gb_driver_ready(void);
/* Device memory made by address and handle; a look into graphs. */
bool gb_has_staging(void);
bool gb_has_graphs(void);

#endif
