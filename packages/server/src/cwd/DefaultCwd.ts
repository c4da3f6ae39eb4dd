/**
 * Reads the working directory for a `send` without `cwd`: the one line of the agent's file `cwd`, which the operator
 * may edit; created with `/` if absent. Spec: SO-48, SO-49 in specs/socket.md (CW-1).
 */
import { randomBytes } from "node:crypto"
import { constants } from "node:fs"
import * as fs from "node:fs/promises"
import { join } from "node:path"
import { Effect, Schema } from "effect"
import { isName, nameRule } from "@daybook/log/domain/Address"
import { codeOf, makeFolder } from "../support/PrivateFolder.ts"
import { cwdProblem, maxCwdBytes } from "./CwdText.ts"

/** The agent's file `cwd` is not valid. */
export class DefaultCwdUnusable extends Schema.TaggedError<DefaultCwdUnusable>()("DefaultCwdUnusable", {
  /** The error code for the client. */
  code: Schema.Literal("EIO"),
  /** Relative to the layout's root. */
  file: Schema.String,
  message: Schema.String
}) {}

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants

const first = "/\n"

/** The text of a regular file of bounded length; undefined if it is absent. Fails with a sentence. */
const readText = (path: string): Effect.Effect<string | undefined, string> =>
  Effect.acquireUseRelease(
    Effect.tryPromise({
      // Non-blocking, so that opening a pipe does not hang.
      try: () => fs.open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK),
      catch: codeOf
    }),
    (file) =>
      Effect.tryPromise({
        try: async () => {
          if (!(await file.stat()).isFile()) return undefined
          const bytes = new Uint8Array(maxCwdBytes + 2)
          let length = 0
          for (let read = -1; read !== 0 && length < bytes.length; length += read) {
            ;({ bytesRead: read } = await file.read(bytes, length, bytes.length - length, length))
          }
          return bytes.subarray(0, length)
        },
        catch: codeOf
      }),
    (file) => Effect.promise(() => file.close().catch(() => {}))
  ).pipe(
    Effect.mapError((code) => (code === "ELOOP" ? "it is a symbolic link" : code)),
    Effect.flatMap((bytes) =>
      bytes === undefined
        ? Effect.fail("it is not a regular file")
        : Effect.try({
            try: () => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes),
            catch: () => "it is not UTF-8"
          })
    ),
    Effect.catchIf(
      (code) => code === "ENOENT",
      () => Effect.succeed(undefined)
    )
  )

/** Creates the file with its whole content, unless it exists by now. */
const writeFirst = (folder: string, path: string): Effect.Effect<void, string> =>
  Effect.tryPromise({
    try: async () => {
      const temporary = join(folder, `.cwd.${randomBytes(4).toString("hex")}.tmp`)
      const file = await fs.open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
      try {
        await file.writeFile(first)
        await fs.link(temporary, path)
      } catch (cause) {
        if (codeOf(cause) !== "EEXIST") throw cause
      } finally {
        await file.close()
        await fs.unlink(temporary)
      }
    },
    catch: (cause) => `it cannot be created (${codeOf(cause)})`
  })

/** The agent's default: a well-formed path of its world. `resolveCwd` checks that it exists there. */
export const agentDefaultCwd: (options: {
  readonly root: string
  readonly name: string
  /** The folder of agents, relative to the root; in a common root each user has one. */
  readonly agents?: string | undefined
}) => Effect.Effect<string, DefaultCwdUnusable> = Effect.fn("Cwd.agentDefault")(function* ({
  agents = "agent",
  root,
  name
}) {
  const file = `${agents}/${name}.d/cwd`
  const unusable = (why: string) =>
    new DefaultCwdUnusable({
      code: "EIO",
      file,
      message: `${file} cannot be used: ${why}. It has to be one line, an absolute path of the agent's world such as /.`
    })
  if (!isName(name)) return yield* unusable(`the agent's name has to be ${nameRule}`)
  const folder = yield* Effect.mapError(makeFolder(root, [...agents.split("/"), `${name}.d`]), () =>
    unusable("its folder is not private to this user")
  )
  const path = join(folder, "cwd")
  const text = yield* readText(path).pipe(
    Effect.flatMap((found) =>
      found === undefined ? Effect.zipRight(writeFirst(folder, path), readText(path)) : Effect.succeed(found)
    ),
    Effect.mapError(unusable)
  )
  const line = text?.endsWith("\n") ? text.slice(0, -1) : (text ?? "")
  const problem = cwdProblem(line)
  return problem === undefined ? line : yield* unusable(problem)
})
