/** Bounds the garbage of a process that runs for long or reads much. */
import { setFlagsFromString } from "node:v8"

/**
 * Lets V8 collect the heap when it has grown by half. By default it grows to four times the live data on a machine with
 * much memory, although most of the garbage are texts that are already sent or stored. It also ends the start of a
 * server, during which V8 collects more often and keeps the young generation small (`bin/daybook.js`).
 */
export const bound = (): void => {
  for (const flag of ["--semi-space-growth-factor=2", "--heap-growing-percent=50"]) setFlagsFromString(flag)
}
