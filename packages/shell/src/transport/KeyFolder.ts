/**
 * Reads a private key from the operator's folder. An agent chooses the name, so every fault of the path gives the same error:
 * it does not say which files exist. Spec: SL-85 in specs/shell.md.
 */
import { constants } from "node:fs"
import { open, realpath } from "node:fs/promises"
import { resolve, sep } from "node:path"
import { Effect } from "effect"
import { InvalidOption } from "../domain/ShellError.ts"

/** No private key is that large. */
const mostBytes = 64 * 1024

/** The error of every path that is not that of a usable key. */
export const unusable = new InvalidOption({
  option: "keyPath",
  details: "no usable private key: name a key file within the operator's folder of keys"
})

/** The file may be a link, but must lie within the folder. Links are resolved before the file is opened. */
const readWithin = async (folder: string, name: string): Promise<Buffer> => {
  const root = await realpath(folder)
  const path = await realpath(resolve(root, name))
  if (!path.startsWith(root.endsWith(sep) ? root : root + sep)) throw new Error("outside")
  // A pipe must not block the open.
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const stats = await file.stat()
    if (!stats.isFile() || stats.size > mostBytes) throw new Error("no key")
    return await file.readFile()
  } finally {
    await file.close()
  }
}

/** The bytes of the key file at a path, absolute or relative to the folder. */
export const readKey = (folder: string | undefined, name: string): Effect.Effect<Buffer, InvalidOption> =>
  folder === undefined
    ? new InvalidOption({
        option: "keyPath",
        details:
          "no folder of keys is configured: set shell.ssh.keys in the configuration, or use an agent or a password"
      })
    : Effect.tryPromise({ try: () => readWithin(folder, name), catch: () => unusable })
