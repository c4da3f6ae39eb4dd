/** Bounds the garbage of a process that runs for long or reads much. */
import { setFlagsFromString } from "node:v8"
import { Effect } from "effect"
import * as Collection from "@daybook/log/support/Collection"

/**
 * Lets V8 collect the heap when it has grown by half. By default it grows to four times the live data on a machine with
 * much memory, although most of the garbage are texts that are already sent or stored.
 */
export const bound = (): void => setFlagsFromString("--heap-growing-percent=50")

/** For a server that is ready: bounds its garbage from now on, and gives back the memory of its start. */
export const started = Effect.zipRight(Effect.sync(bound), Collection.afterStart)
