/**
 * Owns the path of a socket: its folders, a stale socket there, publishing and removing. `Listener.ts` accepts clients.
 * Spec: SO-70..SO-74 in specs/socket.md.
 *
 * A socket is bound under a temporary name in a folder that only its owner can enter, gets its mode there, and is then
 * linked to its path. So no other user can ever connect too early, and no server takes the path from another.
 */
import { randomBytes } from "node:crypto"
import { lstatSync, unlinkSync } from "node:fs"
import * as fs from "node:fs/promises"
import { connect } from "node:net"
import { dirname, join } from "node:path"
import { Effect, Schema } from "effect"
import type { SharedSpaces } from "@daybook/files/layout/Layout"
import { codeOf } from "@daybook/log/support/SystemError"
import { makeFolder } from "../shared/PrivateFolder.ts"

/** Another server answers at the path. */
export class SocketBusy extends Schema.TaggedError<SocketBusy>()("SocketBusy", {
  path: Schema.String,
  message: Schema.String
}) {}

/** No socket can be created at the path; the message says why and what to do. */
export class SocketUnusable extends Schema.TaggedError<SocketUnusable>()("SocketUnusable", {
  path: Schema.String,
  message: Schema.String
}) {}

/** The maximum length of a Unix socket's address in bytes, without the final NUL. */
export const maxSocketPathBytes = process.platform === "darwin" ? 103 : 107

const busy = (path: string) =>
  new SocketBusy({ path, message: `Another server answers at ${path}. Stop it first, or choose another root.` })

const unusable = (path: string, why: string) => new SocketUnusable({ path, message: `${path}: ${why}` })

const io = <A>(path: string, verb: string, run: () => Promise<A>): Effect.Effect<A, SocketUnusable> =>
  Effect.tryPromise({ try: run, catch: (cause) => unusable(path, `cannot ${verb} (${codeOf(cause)})`) })

/** The status of the path, without following links; undefined if it does not exist. */
const lookAt = (path: string) =>
  io(path, "look at it", () =>
    fs.lstat(path).catch((cause: unknown) => {
      if (codeOf(cause) === "ENOENT") return undefined
      throw cause
    })
  )

export interface SocketPlace {
  /** The layout's root, as an absolute host path. */
  readonly root: string
  /** The socket's path below it, such as `agent/coder.sock`. */
  readonly name: string
  /** 0600 by default. */
  readonly mode?: number | undefined
  /** The socket's group; by default that of its user. */
  readonly group?: number | undefined
  /** The shared spaces, which decide the modes of the folders. */
  readonly shared?: SharedSpaces | undefined
  /** A private folder below the root; the socket is bound there first if its own folder is open to others. */
  readonly bindIn?: string | undefined
}

/** Creates the folders of the socket; returns its host path, and a temporary path in a private folder. */
export const prepare = Effect.fnUntraced(function* ({ bindIn, name, root, shared }: SocketPlace) {
  const path = join(root, name)
  const temporary = temporaryPath(bindIn === undefined ? path : join(root, bindIn, "socket"))
  const length = Math.max(Buffer.byteLength(path), Buffer.byteLength(temporary))
  if (length > maxSocketPathBytes) {
    return yield* unusable(
      path,
      `a socket path may have ${maxSocketPathBytes} bytes, and this has ${length}. Choose a shorter root.`
    )
  }
  const segments = name.split("/")
  const file = segments.pop() ?? ""
  const make = (names: ReadonlyArray<string>) =>
    Effect.mapError(makeFolder(root, names, shared), (error) => new SocketUnusable({ path, message: error.message }))
  const folder = yield* make(segments)
  if (bindIn !== undefined) yield* make(bindIn.split("/"))
  if (file === "" || file === "." || file === "..") return yield* unusable(path, "this is not a valid socket name.")
  return { path: join(folder, file), temporary }
})

const temporaryPath = (path: string): string => join(dirname(path), `.${randomBytes(3).toString("hex").slice(1)}`)

const answers = (path: string): Effect.Effect<boolean, SocketUnusable> =>
  Effect.async<boolean, SocketUnusable>((resume) => {
    const socket = connect({ path })
    const settle = (answer: Effect.Effect<boolean, SocketUnusable>): void => {
      socket.destroy()
      resume(answer)
    }
    socket.once("connect", () => settle(Effect.succeed(true)))
    socket.on("error", (cause) => {
      const code = codeOf(cause)
      // A full backlog is an answer too.
      if (code === "EAGAIN") settle(Effect.succeed(true))
      else if (code === "ECONNREFUSED" || code === "ENOENT") settle(Effect.succeed(false))
      else settle(Effect.fail(unusable(path, `cannot tell whether a server answers there (${code}).`)))
    })
  })

const same = (one: Published, other: Published): boolean => one.ino === other.ino && one.dev === other.dev

/** Removes the file at the path if it is the file at the other; synchronous, so that nothing happens in between. */
const removeSame = (path: string, other: string) =>
  io(path, "remove the old socket", async () => {
    const found = lstatSync(path, { throwIfNoEntry: false })
    if (found !== undefined && same(found, lstatSync(other))) unlinkSync(path)
  })

/** Removes a stale socket. Fails if a server answers, or if the file is not a socket. */
export const clear = Effect.fnUntraced(function* (path: string) {
  const found = yield* lookAt(path)
  if (found === undefined) return
  if (!found.isSocket()) return yield* unusable(path, "it is not a socket. Move it away.")
  // Under a second name it can be probed and compared, even if another server publishes at the path meanwhile.
  const second = temporaryPath(path)
  const kept = yield* io(path, "give the old socket a second name", () =>
    fs.link(path, second).then(
      () => true,
      (cause: unknown) => {
        if (codeOf(cause) === "ENOENT") return false
        throw cause
      }
    )
  )
  if (!kept) return
  yield* answers(second).pipe(
    Effect.flatMap((live): Effect.Effect<void, SocketBusy | SocketUnusable> =>
      live ? Effect.fail(busy(path)) : removeSame(path, second)
    ),
    Effect.ensuring(Effect.ignore(io(second, "remove it", () => fs.unlink(second))))
  )
})

/** Identifies a socket file, to distinguish it from another at the same path. */
export interface Published {
  readonly dev: number
  readonly ino: number
}

/** Sets the mode of a bound socket and links it to its path. */
export const publish = Effect.fnUntraced(function* (
  temporary: string,
  path: string,
  { group, mode = 0o600 }: Pick<SocketPlace, "group" | "mode"> = {}
) {
  if (group !== undefined) {
    yield* io(temporary, `give the socket to group ${group}`, () => fs.chown(temporary, process.getuid?.() ?? 0, group))
  }
  yield* io(temporary, "set the permissions of the socket", () => fs.chmod(temporary, mode))
  yield* Effect.tryPromise({
    try: () => fs.link(temporary, path),
    catch: (cause) =>
      codeOf(cause) === "EEXIST" ? busy(path) : unusable(path, `cannot make the socket (${codeOf(cause)})`)
  })
  yield* io(temporary, "remove it", () => fs.unlink(temporary))
  const { dev, ino } = yield* io(path, "look at it", () => fs.lstat(path))
  return { dev, ino } satisfies Published
})

/** Removes the socket if it is still the file at the path. */
export const unpublish = (path: string, published: Published): Effect.Effect<void> =>
  lookAt(path).pipe(
    Effect.flatMap((found) =>
      found !== undefined && same(found, published) ? io(path, "remove it", () => fs.unlink(path)) : Effect.void
    ),
    Effect.ignore
  )
