/** A client of a socket, like `socat`: it writes lines, closes its side, and reads until the end. */
import { Effect, type Scope } from "effect"
import { existsSync, readFileSync, type FSWatcher, watch } from "node:fs"
import { connect } from "node:net"
import { dirname } from "node:path"

export type Frame = Readonly<Record<string, unknown>>

export interface Client {
  readonly write: (text: string) => Effect.Effect<void>
  /** Closes its side; pending requests are still answered. */
  readonly end: Effect.Effect<void>
  /** Completes when the frames so far satisfy the predicate; dies if the server hangs up first. */
  readonly until: (holds: (frames: ReadonlyArray<Frame>) => boolean) => Effect.Effect<ReadonlyArray<Frame>>
  /** All frames, once the server has hung up. */
  readonly closed: Effect.Effect<ReadonlyArray<Frame>>
}

/** Connects until the scope closes. */
export const client = (path: string): Effect.Effect<Client, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.async<{ readonly client: Client; readonly destroy: () => void }>((resume) => {
      const socket = connect({ path, allowHalfOpen: true })
      let text = ""
      let over = false
      const watchers = new Set<() => void>()
      const look = () => [...watchers].forEach((watcher) => watcher())
      const frames = (): ReadonlyArray<Frame> =>
        text
          .slice(0, text.lastIndexOf("\n") + 1)
          .split("\n")
          .filter((line) => line !== "")
          .map((line) => JSON.parse(line))
      socket.setEncoding("utf8").on("data", (part: string) => {
        text += part
        look()
      })
      const end = () => {
        over = true
        look()
      }
      socket.on("end", end).on("close", end)
      socket.on("error", () => undefined)
      const seen = (holds: (frames: ReadonlyArray<Frame>) => boolean, atEnd: boolean) =>
        Effect.async<ReadonlyArray<Frame>>((resume) => {
          const watcher = () => {
            const now = frames()
            if (atEnd ? !over : !holds(now) && !over) return
            watchers.delete(watcher)
            resume(
              atEnd || holds(now)
                ? Effect.succeed(now)
                : Effect.dieMessage(`the server hung up before that: ${JSON.stringify(now)}`)
            )
          }
          watchers.add(watcher)
          watcher()
          return Effect.sync(() => watchers.delete(watcher))
        })
      const client: Client = {
        write: (text) => Effect.async<void>((resume) => void socket.write(text, () => resume(Effect.void))),
        end: Effect.sync(() => void socket.end()),
        until: (holds) => seen(holds, false),
        closed: seen(() => true, true)
      }
      socket.once("connect", () => resume(Effect.succeed({ client, destroy: () => socket.destroy() })))
    }),
    ({ destroy }) => Effect.sync(destroy)
  ).pipe(Effect.map(({ client }) => client))

/** Sends one request on a new connection, like `printf ... | socat -`, and returns all frames of the answer. */
export const ask = (path: string, request: Frame): Effect.Effect<ReadonlyArray<Frame>> =>
  Effect.scoped(
    Effect.gen(function* () {
      const asking = yield* client(path)
      yield* asking.write(`${JSON.stringify(request)}\n`)
      yield* asking.end
      return yield* asking.closed
    })
  )

/** The folder, or the closest of its parents that exists. */
const closest = (folder: string): string => (existsSync(folder) ? folder : closest(dirname(folder)))

/** Waits until a file's text satisfies the predicate, like a reader with `tail -f`. */
export const untilFile = (path: string, holds: (text: string) => boolean): Effect.Effect<string> =>
  Effect.async<string>((resume) => {
    const look = () => {
      // The folder may be created later: then its closest parent is watched until it is.
      const folder = closest(dirname(path))
      if (folder !== watched) {
        watcher?.close()
        watcher = watch((watched = folder), look)
      }
      const text = existsSync(path) ? readFileSync(path, "utf8") : ""
      if (!holds(text)) return
      watcher?.close()
      resume(Effect.succeed(text))
    }
    let watched: string | undefined
    let watcher: FSWatcher | undefined
    look()
    return Effect.sync(() => watcher?.close())
  })
