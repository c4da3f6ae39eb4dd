/**
 * Follows a stream of events line by line, each event once and in order: a stream that breaks continues at its cursor.
 * Ends when the server says that nothing can follow. Spec: IP-5 in specs/http.md, SL-229 in specs/shell.md.
 *
 *   connecting -> reading -> live -> (cut off) waiting -> connecting at the last cursor
 */
import type { Frame } from "@daybook/api/wire/EventFrames"
import { type Api, ApiError, withQuery } from "./Api.ts"

export const joined = (milliseconds: number, work: () => Promise<void>): (() => void) => {
  let [isWaiting, isRunning] = [false, false]
  const call = (): void => {
    if (isWaiting) return
    isWaiting = true
    setTimeout(start, milliseconds)
  }
  const start = (): void => {
    // Called again while it runs: once more afterwards.
    if (isRunning) return void setTimeout(start, milliseconds)
    isWaiting = false
    isRunning = true
    void work().finally(() => (isRunning = false))
  }
  return call
}

/**
 * `reading`: stored events arrive. `live`: all arrived. `lost`, `full` and `unreadable` are tried again, the others are not.
 * `ended`: the replay was asked for without what follows.
 */
export type FollowState =
  "connecting" | "reading" | "live" | "lost" | "full" | "unreadable" | "ended" | "refused" | "removed" | "expired"

export interface FollowOptions {
  readonly path: string
  /** The cursor to start after; absent: the first event. */
  readonly after?: string | undefined
  /** Events after the cursor were pruned: the oldest ones that are kept follow. Without it, the reader ends as `expired`. */
  readonly pruned?: () => void
  /** What statuses mean, where it is not what they mean in the API. `again`: the log is another one, and starts again. */
  readonly refusals?: Readonly<Record<number, FollowState | "again">>
  /** The stream starts again. */
  readonly again?: () => void
  /** Deltas of running turns too. */
  readonly live?: boolean
  readonly frames: (frames: ReadonlyArray<Frame>) => void
  readonly state?: (state: FollowState) => void
  readonly signal: AbortSignal
  /** Waits before another attempt; the tests replace it. */
  readonly pause?: (milliseconds: number, signal: AbortSignal) => Promise<void>
}

const shortest = 500
const longest = 15_000

const sleep = (milliseconds: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds)
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true })
  })

/** The complete lines of a text, and the beginning of an unfinished one. */
export const linesOf = (text: string): readonly [ReadonlyArray<string>, string] => {
  const lines = text.split("\n")
  const rest = lines.pop() ?? ""
  return [lines.filter((line) => line.trim() !== ""), rest]
}

const parse = (line: string): Frame => JSON.parse(line)

/** What the last frame of a stream means for its reader; undefined: connect again. */
const outcomes: Readonly<Record<string, FollowState | undefined>> = {
  complete: "ended",
  removed: "removed",
  expired: "expired"
}

const refusalOf = (error: unknown, { refusals }: FollowOptions): FollowState | "again" | undefined => {
  if (!(error instanceof ApiError)) return undefined
  if (refusals !== undefined) return refusals[error.status]
  if (error.status === 401 || error.status === 403) return "refused"
  if (error.status === 410) return "expired"
  return error.status >= 400 && error.status < 500 && error.status !== 429 ? "removed" : undefined
}

const readOnce = async (api: Api, options: FollowOptions, cursor: { after: string | undefined; moved: boolean }) => {
  const { frames, live, path, signal, state } = options
  const response = await api.open(withQuery(path, { after: cursor.after, live: live === true ? 1 : undefined }), {
    signal,
    headers: { accept: "application/x-ndjson" }
  })
  state?.("reading")
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  let [rest, outcome]: [string, FollowState | undefined] = ["", undefined]
  for (;;) {
    const part = await reader?.read()
    if (part === undefined || part.done) return outcome
    const [lines, unfinished] = linesOf(rest + part.value)
    rest = unfinished
    const batch = lines.map(parse)
    for (const frame of batch) {
      if (frame.frame === "event" || frame.frame === "replay.complete") cursor.after = frame.cursor
      if (frame.frame === "event") cursor.moved = true
      if (frame.frame === "end") outcome = outcomes[frame.reason]
    }
    if (batch.length > 0) frames(batch)
    if (batch.some(({ frame }) => frame === "replay.complete")) {
      cursor.moved = true
      state?.("live")
    }
  }
}

/** The cursor to start again after, if events were pruned and the reader goes on without them. */
const restartOf = (error: unknown, { pruned }: FollowOptions, after: string | undefined): string | undefined =>
  // The same cursor again would be refused again.
  pruned !== undefined && error instanceof ApiError && error.floorCursor !== after ? error.floorCursor : undefined

/** Follows until the signal, or until nothing can follow. */
export const follow = async (api: Api, options: FollowOptions): Promise<void> => {
  const { pause = sleep, signal, state } = options
  const cursor = { after: options.after, moved: false }
  let wait = shortest
  state?.("connecting")
  while (!signal.aborted) {
    let restart: string | undefined
    const outcome = await readOnce(api, options, cursor).catch((error: unknown) => {
      restart = restartOf(error, options, cursor.after)
      return restart === undefined ? refusalOf(error, options) : undefined
    })
    if (signal.aborted) return
    if (outcome === "again") {
      cursor.after = options.after
      options.again?.()
    }
    if (restart !== undefined) {
      cursor.after = restart
      options.pruned?.()
      continue
    }
    // A stream that ends as expired is refused with the floor's cursor when it is asked for again.
    const goesOn = outcome === "expired" && options.pruned !== undefined && cursor.moved
    const trouble = outcome === "full" || outcome === "unreadable" ? outcome : "lost"
    if (outcome !== undefined && outcome !== "again" && outcome !== trouble && !goesOn) return state?.(outcome)
    if (cursor.moved) wait = shortest
    cursor.moved = false
    state?.(trouble)
    // A server that was started again is not asked by all its pages at once.
    await pause(wait * (0.5 + Math.random() / 2), signal)
    wait = Math.min(longest, wait * 2)
  }
}
