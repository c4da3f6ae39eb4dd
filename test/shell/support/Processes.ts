/** Looks for processes of this machine, those in containers included. */
import { readdirSync, readFileSync } from "node:fs"
import { Effect } from "effect"

/** Ids of the processes whose file has the content. */
const having = (file: "cmdline" | "environ", looked: (content: string) => boolean) =>
  Effect.sync(() =>
    readdirSync("/proc").flatMap((name) => {
      if (!/^\d+$/.test(name)) return []
      try {
        return looked(readFileSync(`/proc/${name}/${file}`, "utf8")) ? [Number(name)] : []
      } catch {
        // It has ended in between.
        return []
      }
    })
  )

/** Running processes whose program and arguments, separated by spaces, are this text. */
export const processes = (text: string) => having("cmdline", (content) => content.replaceAll("\0", " ").trim() === text)

/** The process with this text, once it has it: between fork and exec a child has its shell's. */
export const begun = (text: string): Effect.Effect<number> =>
  Effect.map(Effect.repeat(processes(text), { until: (ids) => ids.length > 0 }), ([id = 0]) => id)

/** Running processes that were started with this variable, such as `NAME=value`. */
export const processesOf = (variable: string) => having("environ", (content) => content.split("\0").includes(variable))
