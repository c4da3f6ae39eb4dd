/** Looks for processes of this machine, those in containers included. */
import { readdirSync, readFileSync } from "node:fs"
import { Effect } from "effect"

/** Running processes whose program and arguments, separated by spaces, are this text. */
export const processes = (text: string) =>
  Effect.sync(() =>
    readdirSync("/proc").flatMap((name) => {
      if (!/^\d+$/.test(name)) return []
      try {
        const line = readFileSync(`/proc/${name}/cmdline`, "utf8").replaceAll("\0", " ").trim()
        return line === text ? [Number(name)] : []
      } catch {
        // It has ended in between.
        return []
      }
    })
  )
