/** Clocks of processes that a test steps while they run: libfaketime reads the offset from a file, again each second. */
import { globSync, renameSync, writeFileSync } from "node:fs"

export const library = (): string | undefined => globSync("/usr/lib/*/faketime/libfaketimeMT.so.1")[0]

export interface SteppedClock {
  /** What a process needs in its environment. Its monotonic clock stays the machine's. */
  readonly env: Readonly<Record<string, string>>
  /** Steps the wall clock to this many seconds after the machine's, within a second. */
  readonly step: (seconds: number) => void
}

/** Without the library, the process has the machine's clock. */
export const make = (file: string): SteppedClock => {
  const step = (seconds: number) => {
    writeFileSync(`${file}.next`, `${seconds < 0 ? "" : "+"}${seconds}\n`)
    // A process that reads meanwhile finds the whole file.
    renameSync(`${file}.next`, file)
  }
  step(0)
  const preload = library()
  const faked = {
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_CACHE_DURATION: "1",
    FAKETIME_DONT_FAKE_MONOTONIC: "1"
  }
  return { env: preload === undefined ? {} : { LD_PRELOAD: preload, ...faked }, step }
}
