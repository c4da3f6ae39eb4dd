/**
 * What a command line shows about folders before it runs. The warnings advise the person and the model, and are not a boundary: a shell
 * can name a path in more ways than a scan can see (TO-118). Pure.
 */
import * as path from "node:path"
import type { CommandLine } from "@daybook/core/permission/CommandLine"

const maximumPaths = 10
const word = /(^|[\s"'`=<>|;&(:])((?:~|\/)[^\s"'`<>|;&():]*)/g
/** Paths that every command may name. */
const harmless = /^\/(?:dev\/(?:null|zero|stdin|stdout|stderr|tty|fd\/\d+)|(?:usr\/(?:local\/)?)?bin\/[\w.-]+)?$/

/** The absolute paths that a command names outside a folder. */
export const pathsOutside = (command: string, folder: string): ReadonlyArray<string> => {
  const found = new Set<string>()
  for (const [, before, name = ""] of command.matchAll(word)) {
    // This is the middle of a URL.
    if (before === ":" && name.startsWith("//")) continue
    const inside = name.startsWith("/") && !path.relative(folder, path.resolve(name)).startsWith("..")
    if (!inside && !harmless.test(name)) found.add(name)
    if (found.size === maximumPaths) break
  }
  return [...found]
}

/** The folder that a line enters which does nothing else, from the folder `cwd`. */
export const entered = (line: CommandLine, cwd: string): string | undefined => {
  if ("unread" in line || line.loose.length > 0 || line.defines.length > 0) return undefined
  const [first, second] = line.commands
  if (first === undefined || second !== undefined) return undefined
  const [name, target, more] = first.words
  const isPlain = first.assignments.length === 0 && first.redirects.length === 0 && more === undefined
  return isPlain && name?.text === "cd" && target?.fixed === true ? path.resolve(cwd, target.text) : undefined
}

/** The line that enters a folder. */
export const entering = (folder: string): string => `cd '${folder.replaceAll("'", `'\\''`)}'`
