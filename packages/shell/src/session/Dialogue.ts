/**
 * Follows what a shell prints while it runs one command after another: gives the output of each command to its sinks, and
 * finds its end. Synchronous; `LiveShell.ts` writes the lines and waits. Spec: SL-13..SL-15 in specs/shell.md.
 */
import { randomBytes } from "node:crypto"
import { Effect } from "effect"
import type { StreamName } from "../transport/Program.ts"

// Cuts one stream of a shell at the marks of its commands. A mark has a token that no command knows, and may be split
// over chunks.

/** Takes a piece of a stream. The bytes must not be kept: they are a view of the chunk. */
export type Sink = (bytes: Uint8Array) => void

/** What a mark's text begins with; of an end and of a note, a record follows, up to a NUL. */
export const markOf = {
  begin: (token: string) => `${token}<`,
  end: (token: string) => `${token}>`,
  note: (token: string) => `${token}|`
}

/** A record is shorter: a path has at most 4,096 bytes. */
const longestRecord = 16_384

const nothing = Buffer.alloc(0)

/** Marks that may still come: of a command, its end, a question for it, and notes. An interrupt can take each of them. */
const mostMarks = 8

type Mark = { readonly text: Buffer; readonly kind: "begin" | "end" | "note"; readonly token: string }

type Match = { readonly mark: Mark; readonly start: number; readonly end: number }

const firstOf = (bytes: Buffer, marks: ReadonlyArray<Mark>): Match | undefined => {
  let first: Match | undefined
  for (const mark of marks) {
    const start = bytes.length < mark.text.length ? -1 : bytes.indexOf(mark.text)
    if (start >= 0 && (first === undefined || start < first.start)) {
      first = { mark, start, end: start + mark.text.length }
    }
  }
  return first
}

/** Length of the longest end of the bytes that begins one of the marks. */
const unfinished = (bytes: Buffer, marks: ReadonlyArray<Mark>): number => {
  let longest = 0
  for (const { text } of marks) {
    for (let length = Math.min(text.length - 1, bytes.length); length > longest; length--) {
      const from = bytes.length - length
      if (bytes[from] === text[0] && bytes.compare(text, 0, length, from) === 0) longest = length
    }
  }
  return longest
}

export interface Events {
  /** The end with this token has passed. The first end of a command ends its output; later ones are removed. */
  readonly ended: (token: string, record: string) => void
  readonly noted: (token: string, record: string) => void
}

/** `late` takes what comes outside of commands. */
export const makeCutter = (late: Sink, events: Events) => {
  let held = nothing
  const marks: Array<Mark> = []
  let sink: Sink = late
  let running = false
  let begun = true
  const expectMark = (kind: Mark["kind"], token: string) => {
    if (marks.length >= mostMarks) marks.shift()
    marks.push({ kind, token, text: Buffer.from(markOf[kind](token), "latin1") })
  }
  const pass = (bytes: Buffer) => {
    if (bytes.length > 0) (running ? sink : late)(bytes)
  }
  /** The bytes after the mark; undefined if its record is not complete. */
  const step = ({ end, mark, start }: Match, bytes: Buffer): Buffer | undefined => {
    if (start > 0) pass(bytes.subarray(0, start))
    const { kind, token } = mark
    const nul = kind === "begin" ? end : bytes.indexOf(0, end)
    if (nul < 0 && bytes.length - end < longestRecord) {
      held = Buffer.from(bytes.subarray(start))
      return undefined
    }
    marks.splice(marks.indexOf(mark), 1)
    if (kind === "begin") {
      running = true
      begun = true
      return bytes.subarray(end)
    }
    if (kind === "end") running = false
    const last = nul < 0 ? bytes.length : nul
    events[kind === "end" ? "ended" : "noted"](token, bytes.toString("utf8", end, last))
    return bytes.subarray(last + 1)
  }
  return {
    /** The next command: its output lies between its beginning and an end, and goes to the sink. */
    expect: (token: string, to: Sink) => {
      begun = false
      sink = to
      expectMark("begin", token)
      expectMark("end", token)
    },
    /** Another mark of the running command. */
    also: expectMark,
    add: (chunk: Buffer) => {
      let bytes = held.length === 0 ? chunk : Buffer.concat([held, chunk])
      held = nothing
      for (let match = firstOf(bytes, marks); match !== undefined; match = firstOf(bytes, marks)) {
        const rest = step(match, bytes)
        if (rest === undefined || rest.length === 0) return
        bytes = rest
      }
      const hold = unfinished(bytes, marks)
      pass(hold === 0 ? bytes : bytes.subarray(0, bytes.length - hold))
      // Copied, because the chunk is not ours to keep.
      if (hold > 0) held = Buffer.from(bytes.subarray(bytes.length - hold))
    },
    /** Whether the command's beginning has passed. */
    begun: () => begun,
    /** Passes on what was held back, when nothing follows. */
    flush: () => {
      pass(held)
      held = nothing
    }
  }
}

// Removes complaints of an interactive bash from the errors of a command: about its terminal, and about a read-only
// `_`.

/** Longer lines are no complaint. */
const longest = 256

const newline = 10

const start = Buffer.from("bash: ")

const complaints = (pid: number): RegExp =>
  new RegExp(`^bash: (?:_: readonly variable|\\[${pid}: [^\\]]+\\] tcsetattr: [^\\n]+)$`)

const beginning = (bytes: Buffer, text: Buffer): number => {
  for (let length = Math.min(bytes.length, text.length - 1); length > 0; length--) {
    if (bytes.subarray(bytes.length - length).equals(text.subarray(0, length))) return length
  }
  return 0
}

export interface Quiet {
  readonly add: Sink
  /** Passes what is still held. */
  readonly end: () => void
}

/** `pid` is the shell's own number of its process. */
export const without = (pid: number, sink: Sink): Quiet => {
  // Most commands print no errors.
  let found: RegExp | undefined
  let held = nothing
  const pass = (bytes: Buffer) => {
    if (bytes.length > 0) sink(bytes)
  }
  return {
    add: (bytes) => {
      const complaint = (found ??= complaints(pid))
      let rest = held.length === 0 ? Buffer.from(bytes) : Buffer.concat([held, bytes])
      for (let at = rest.indexOf(start); at >= 0; at = rest.indexOf(start)) {
        pass(rest.subarray(0, at))
        rest = rest.subarray(at)
        const end = rest.indexOf(newline)
        if (end < 0 && rest.length <= longest) {
          held = rest
          return
        }
        const line = rest.subarray(0, end)
        if (end < 0 || end > longest || !complaint.test(line.toString("latin1"))) {
          pass(rest.subarray(0, start.length))
          rest = rest.subarray(start.length)
        } else rest = rest.subarray(end + 1)
      }
      const left = beginning(rest, start)
      pass(rest.subarray(0, rest.length - left))
      held = rest.subarray(rest.length - left)
    },
    end: () => {
      pass(held)
      held = nothing
    }
  }
}

let pool = ""

/** Characters of a token: six bits each, and few, because bash reads a line character by character. */
const tokenLength = 22

/** At least 128 random bits. Many are drawn at once: a call of the random source costs more than a token. */
export const makeToken = (): string => {
  // Without dashes: a token begins formats and arguments, where a dash would begin an option.
  if (pool.length < tokenLength) pool = randomBytes(4_096).toString("base64url").replaceAll("-", ".")
  const token = pool.slice(0, tokenLength)
  pool = pool.slice(tokenLength)
  return token
}

/** Take the output of one command. */
export interface Sinks {
  readonly stdout: Sink
  readonly stderr: Sink
}

/**
 * `answered`: the shell has reported the end. `aborted`: it reads lines again and has not. `closed`: it has ended. `halted`: the
 * command has to stop. `late`: none of these came in time.
 */
export type News = "answered" | "aborted" | "closed" | "halted" | "late"

interface Running {
  /** The end with this token completes the command: its own, or that of a later question for the end. */
  token: string
  /** Names the news that the shell reads lines again. */
  note: string | undefined
  /** Streams that have passed the end. */
  readonly passed: Record<StreamName, boolean>
  code: number | undefined
}

/** `late` takes what comes outside of commands. */
export const make = (late: Sink) => {
  let running: Running | undefined
  let closed = false
  let aborted = false
  let halted = false
  let isGivenUp = false
  let code = 0
  let cwd = ""
  let waiting: (() => void) | undefined
  let beginning: (() => void) | undefined

  const end = (found: number) => {
    if (running === undefined) return
    running.code ??= found
    code = running.code
  }
  /** A record of the end: the code and the folder. A shell cannot name a deleted folder. */
  const ended = (record: string) => {
    const [, found = "255", folder = ""] = /^(\d{1,3}) ([^]*)$/.exec(record) ?? []
    end(Number(found))
    if (folder !== "") cwd = folder
  }
  const events = (stream: StreamName): Events => ({
    ended: (token, record) => {
      if (running?.token !== token) return
      running.passed[stream] = true
      if (stream === "stdout") ended(record)
    },
    noted: (token, record) => {
      if (running?.note !== token || running.code !== undefined) return
      // An interrupt took the rest of the command's line.
      end(Number(record))
      aborted = true
    }
  })
  const streams = {
    stdout: makeCutter(late, events("stdout")),
    stderr: makeCutter(late, events("stderr"))
  }

  const current = (): News | undefined => {
    if (running?.passed.stdout === true && running.passed.stderr) return "answered"
    if (closed) return "closed"
    if (halted) return "halted"
    return isGivenUp ? "late" : aborted ? "aborted" : undefined
  }
  const hasBegun = () => streams.stdout.begun() || closed
  const check = () => {
    if (hasBegun()) beginning?.()
    if (current() !== undefined) waiting?.()
  }
  return {
    take: (stream: StreamName, bytes: Uint8Array) => {
      streams[stream].add(
        Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
      )
      check()
    },
    begin: (sinks: Sinks) => {
      const token = makeToken()
      running = { token, note: undefined, passed: { stdout: false, stderr: false }, code: undefined }
      aborted = false
      halted = false
      isGivenUp = false
      streams.stdout.expect(token, sinks.stdout)
      streams.stderr.expect(token, sinks.stderr)
      return token
    },
    /** Expects another report of the running command's end; returns its token. */
    again: () => {
      const token = makeToken()
      if (running !== undefined) {
        running.token = token
        running.passed.stdout = false
        running.passed.stderr = false
      }
      aborted = false
      streams.stdout.also("end", token)
      streams.stderr.also("end", token)
      return token
    },
    /** Expects the news that the shell reads lines again; returns its token. */
    note: () => {
      const token = makeToken()
      if (running !== undefined) running.note = token
      streams.stdout.also("note", token)
      return token
    },
    /** Whether the shell has read the command's line and runs it. */
    hasRun: streams.stdout.begun,
    /** Whether that is so, or the shell has ended. */
    hasBegun,
    /** Waits until that is so. */
    begun: Effect.async<void>((resume) => {
      beginning = () => {
        beginning = undefined
        resume(Effect.void)
      }
      check()
    }),
    /** Waits for the next news of the running command, at most so long. */
    news: (millis?: number) =>
      Effect.async<News>((resume) => {
        const stop = () => {
          clearTimeout(timer)
          waiting = undefined
        }
        const pass = () => {
          const news = current() ?? "late"
          stop()
          halted &&= news !== "halted"
          resume(Effect.succeed(news))
        }
        const timer = millis === undefined || current() !== undefined ? undefined : setTimeout(pass, millis)
        waiting = pass
        check()
        return Effect.sync(stop)
      }),
    /** Gives the news `halted` once, or takes it back. */
    halt: (isHalted: boolean) => {
      halted = isHalted
      check()
    },
    /** Gives the news `late`: the shell does not report the running command's end. */
    giveUp: () => {
      isGivenUp = true
      check()
    },
    /** Nothing more comes. */
    close: () => {
      streams.stdout.flush()
      streams.stderr.flush()
      closed = true
      check()
    },
    /** Exit code of the last command that the shell reported. */
    code: () => code,
    cwd: () => cwd
  }
}

export type Dialogue = ReturnType<typeof make>
