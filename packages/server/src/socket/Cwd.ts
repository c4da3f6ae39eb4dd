/**
 * Resolves a client's working directory within the agent's world: a host folder, the root, which is `/` there. Nothing
 * outside the root is accessed, so no answer depends on the host. `Request.ts` checks the text of a path; tools check
 * again when they open files. Spec: SO-40..SO-49 in specs/socket.md (CW-1..CW-6, DC-1).
 *
 * The path is walked name by name, as the kernel does, and a link is followed by its own text. A link counts as it is on
 * the host, where the agent's tools work: a relative one from its folder, an absolute one as a host path. One that leaves
 * the root on its way is refused, even if it would come back.
 */
import { randomBytes } from "node:crypto"
import { constants } from "node:fs"
import * as fs from "node:fs/promises"
import { join } from "node:path"
import { Effect, Schema } from "effect"
import { isName, nameRule } from "@daybook/log/domain/Address"
import { codeOf } from "@daybook/log/support/SystemError"
import { makeFolder } from "../shared/PrivateFolder.ts"
import { cwdProblem, maxCwdBytes, segmentsOf } from "./Request.ts"

// Reads the agent's file `cwd`, the working directory for a `send` without `cwd`.

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
      catch: (cause) => codeOf(cause)
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
        catch: (cause) => codeOf(cause)
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

/** A working directory as the host and as the agent see it. */
export interface ResolvedCwd {
  /** The canonical host folder. */
  readonly directory: string
  /** The canonical path below the agent's root; this is stored, shown and hashed. */
  readonly shown: string
}

/** Why a client's working directory is refused. */
export class CwdRefused extends Schema.TaggedError<CwdRefused>()("CwdRefused", {
  code: Schema.Literal("EINVAL", "EACCES", "ENOENT"),
  message: Schema.String
}) {}

interface ResolveCwd {
  /** The host folder that is `/` for the agent. */
  readonly root: string
  readonly cwd: string
}

/** The limit of Linux. */
const maxLinks = 40

const malformed = (why: string) =>
  new CwdRefused({ code: "EINVAL", message: `"cwd" has to be a folder of the agent's world: ${why}` })
const outside = new CwdRefused({ code: "EACCES", message: '"cwd" leads out of the agent\'s world' })
const closed = new CwdRefused({ code: "EACCES", message: '"cwd" is a folder that may not be entered' })
const absent = new CwdRefused({ code: "ENOENT", message: '"cwd" does not exist in the agent\'s world' })

const refusalOf = (cause: unknown): CwdRefused => {
  switch (codeOf(cause)) {
    case "ENOENT":
      return absent
    case "ENOTDIR":
      return malformed("a name in its path is not a folder")
    case "ENAMETOOLONG":
      return malformed("it is too long")
    default:
      return closed
  }
}

const io = <A>(run: () => Promise<A>): Effect.Effect<A, CwdRefused> => Effect.tryPromise({ try: run, catch: refusalOf })

/** The rest of a path below a folder, compared name by name; undefined if it is elsewhere. */
const below = (path: ReadonlyArray<string>, folder: ReadonlyArray<string>): ReadonlyArray<string> | undefined =>
  folder.every((name, at) => path[at] === name) ? path.slice(folder.length) : undefined

/** The names below the root that the path resolves to: all are folders, and none is a link. */
const walk = Effect.fnUntraced(function* (roots: ReadonlyArray<string>, real: string, names: ReadonlyArray<string>) {
  const ahead = names.toReversed()
  const here: Array<string> = []
  let links = 0
  for (let name = ahead.pop(); name !== undefined; name = ahead.pop()) {
    if (name === "..") {
      if (here.pop() === undefined) return yield* outside
      continue
    }
    const path = join(real, ...here, name)
    const found = yield* io(() => fs.lstat(path))
    if (found.isDirectory()) {
      here.push(name)
      continue
    }
    if (!found.isSymbolicLink()) return yield* malformed("a name in it is not a folder")
    if (++links > maxLinks) return yield* malformed("it goes through too many symbolic links")
    const target = yield* io(() => fs.readlink(path))
    const onward = segmentsOf(target)
    if (!target.startsWith("/")) ahead.push(...onward.toReversed())
    else {
      const inside = roots.map((root) => below(onward, segmentsOf(root))).find((rest) => rest !== undefined)
      if (inside === undefined) return yield* outside
      here.length = 0
      ahead.push(...inside.toReversed())
    }
  }
  return here
})

export const resolveCwd: (options: ResolveCwd) => Effect.Effect<ResolvedCwd, CwdRefused> = Effect.fn("Cwd.resolve")(
  function* ({ root, cwd }) {
    const problem = cwdProblem(cwd)
    if (problem !== undefined) return yield* malformed(problem)
    const real = yield* io(() => fs.realpath(root))
    const names = yield* walk([real, root], real, segmentsOf(cwd))
    const directory = join(real, ...names)
    const shown = `/${names.join("/")}`
    // A link may lead to a name that a client could not send.
    const shownProblem = cwdProblem(shown)
    if (shownProblem !== undefined) return yield* malformed(shownProblem)
    // Requires the permission to enter it.
    yield* io(() => fs.lstat(`${directory}/.`))
    return { directory, shown }
  }
)

/** Fails if the path no longer leads to the resolved folder. Call it when the folder is used. */
export const recheckCwd: (root: string, resolved: ResolvedCwd) => Effect.Effect<void, CwdRefused> = Effect.fn(
  "Cwd.recheck"
)(function* (root, resolved) {
  const { directory } = yield* resolveCwd({ root, cwd: resolved.shown })
  if (directory !== resolved.directory) return yield* outside
})
