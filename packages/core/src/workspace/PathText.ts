/** Checks the text of a path, and makes it absolute in a folder. Spec: TO-13, TO-31..TO-33. */
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import { Effect, Option } from "effect"
import { quoted, refuse } from "./FileFailure.ts"

/** Whether an absolute path is the folder or below it. */
export const isWithin = (root: string, real: string) =>
  real === root || real.startsWith(root.endsWith(path.sep) ? root : root + path.sep)

/** A path's name for permissions and people. */
export const resourceOf = (root: string, real: string) => path.relative(root, real).split(path.sep).join("/") || "."

export const outside = (name: string) =>
  refuse("path.outside", `${quoted(name)} leads out of the Location; only files inside it can be used`)

/**
 * Rewrites an absolute path to lie below the canonical root. A link may give the Location other spellings: the first
 * ancestor that really lies in the Location decides, so that later checks handle links inside it. The error does not
 * reveal anything about paths outside.
 */
export const localize = Effect.fnUntraced(function* (root: string, name: string) {
  if (isWithin(root, name)) return name
  const parts = name.split("/")
  for (let count = 2; count <= parts.length; count++) {
    const real = yield* Effect.option(Effect.tryPromise(() => fs.realpath(parts.slice(0, count).join("/"))))
    if (Option.isNone(real)) break
    if (isWithin(root, real.value)) return [real.value, ...parts.slice(count)].join("/")
  }
  return yield* outside(name)
})

const fromUrl = (url: string) =>
  Effect.try({
    try: () => fileURLToPath(url),
    catch: () => refuse("path.invalid", `${quoted(url)} is not the URL of a file`)
  })

/** Checks the text of a path, before any lookup in the Location. */
export const lexical = Effect.fnUntraced(function* (root: string, given: string) {
  const name = URL.canParse(given) && /^file:\/\/\//i.test(given) ? yield* fromUrl(given) : given
  if (name === "") return yield* refuse("path.invalid", `the path is empty; "." is the Location itself`)
  if (name.includes("\0")) return yield* refuse("path.invalid", `${quoted(name)} holds a NUL character`)
  if (path.isAbsolute(name)) return yield* localize(root, path.resolve(name))
  if (path.win32.isAbsolute(name)) {
    return yield* refuse("path.invalid", `${quoted(name)} is a Windows path; give one relative to the Location`)
  }
  const full = path.resolve(root, name)
  return isWithin(root, full) ? full : yield* outside(name)
})
