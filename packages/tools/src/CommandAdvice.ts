/**
 * Warns about a command before it runs. The warnings advise the person and the model, and are not a boundary: a shell
 * can name a path in more ways than a scan can see (TO-118). Pure.
 */
import * as path from "node:path"

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
