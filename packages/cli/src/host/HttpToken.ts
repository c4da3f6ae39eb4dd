/** The server's own token: a file in the person's data folder, generated once. Spec: HT-22 in specs/http.md. */
import { constants } from "node:fs"
import { open } from "node:fs/promises"
import { homedir } from "node:os"
import { join } from "node:path"
import { Effect, Schema, Stream } from "effect"
import { makeFolders } from "@daybook/log/storage/PrivateFile"
import * as AccessToken from "@daybook/server/http/AccessToken"
import { FileProblem } from "../support/Errors.ts"
import { dataFolder } from "../support/Paths.ts"
import * as WholeFile from "./WholeFile.ts"

const path = Effect.sync(() => join(dataFolder(process.env, homedir()), "http-token"))

const problem = (at: string, why: string) => new FileProblem({ message: `${at}: ${why}` })

const codeOf = (cause: unknown) => (cause instanceof Error && "code" in cause ? String(cause.code) : String(cause))

/** The longest token and a line break. */
const mostBytes = 129

/** The text of the file, if only its owner may read it; undefined if it does not exist. */
const contentOf = (at: string) =>
  Effect.tryPromise({
    try: async () => {
      const file = await open(at, constants.O_RDONLY | constants.O_NOFOLLOW)
      try {
        const { mode } = await file.stat()
        if ((mode & 0o077) !== 0) return { open: true }
        const { buffer, bytesRead } = await file.read(Buffer.alloc(mostBytes + 1), 0, mostBytes + 1)
        return { text: buffer.toString("utf8", 0, bytesRead).trimEnd() }
      } finally {
        await file.close()
      }
    },
    catch: codeOf
  }).pipe(
    Effect.catchAll((code) =>
      code === "ENOENT" ? Effect.succeed(undefined) : Effect.fail(problem(at, `it cannot be read (${code})`))
    )
  )

const decode = Schema.decodeUnknown(AccessToken.AccessToken)

/** The token, if there is one. */
export const existing = Effect.gen(function* () {
  const at = yield* path
  const found = yield* contentOf(at)
  if (found === undefined) return undefined
  if (found.open === true) return yield* problem(at, "others may read it: run chmod 600, or remove it for a new token")
  return yield* Effect.mapError(decode(found.text), () => problem(at, "it has no token: remove it for a new one"))
})

/** The token, which is generated if there is none. Of concurrent callers, all get the same. */
export const ensure = Effect.gen(function* () {
  const before = yield* existing
  if (before !== undefined) return before
  const at = yield* path
  yield* Effect.tryPromise({
    try: () => makeFolders(dataFolder(process.env, homedir()), 0o700),
    catch: (cause) => problem(at, `its folder cannot be made (${codeOf(cause)})`)
  })
  const made = yield* AccessToken.fresh
  return yield* WholeFile.write(at, Stream.make(`${made}\n`), { force: false }).pipe(
    Effect.as(made),
    Effect.catchAll((failed) =>
      Effect.flatMap(existing, (other) => (other === undefined ? Effect.fail(failed) : Effect.succeed(other)))
    )
  )
})
