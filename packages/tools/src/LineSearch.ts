/**
 * Searches files line by line with a regular expression, in a separate thread: a JavaScript expression can take
 * exponential time on a short line, and only a thread can be stopped during a match. Spec: TO-44..TO-46.
 */
import { Worker } from "node:worker_threads"
import { Effect } from "effect"
import { ToolFailure } from "@daybook/core/domain/ToolError"

export const searchLimits = {
  matches: 500,
  fileBytes: 10 * 1024 * 1024,
  /** Characters shown of a matching line. */
  line: 400,
  millis: 15_000
} as const

export interface Match {
  readonly file: string
  readonly line: number
  readonly text: string
}

export interface SearchResult {
  readonly matches: ReadonlyArray<Match>
  /** Numbers of files searched, and of files skipped by reason. */
  readonly searched: number
  readonly binary: number
  readonly large: number
  readonly unreadable: number
  readonly more: boolean
  /** The file in which the time ran out. */
  readonly stoppedIn: string | undefined
}

interface Job {
  readonly folder: string
  readonly files: ReadonlyArray<string>
  readonly source: string
  readonly flags: string
  readonly limits: { readonly matches: number; readonly fileBytes: number; readonly line: number }
}

type Message =
  | { readonly type: "file"; readonly file: string }
  | { readonly type: "matches"; readonly matches: ReadonlyArray<Match> }
  | {
      readonly type: "done"
      readonly searched: number
      readonly binary: number
      readonly large: number
      readonly unreadable: number
      readonly more: boolean
    }

/**
 * The thread's program. It is passed as text, so that a bundle needs no extra file; it must not use anything outside
 * itself.
 */
const program = () => {
  const { parentPort, workerData } = process.getBuiltinModule("node:worker_threads")
  const fs = process.getBuiltinModule("node:fs")
  const path = process.getBuiltinModule("node:path")
  const job: Job = workerData
  const send = (message: Message) => parentPort?.postMessage(message, [])
  const expression = new RegExp(job.source, job.flags)
  const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = fs.constants
  let [found, searched, binary, large, unreadable] = [0, 0, 0, 0, 0]

  /** The file's bytes, or why the file is not searched. */
  const load = (file: string) => {
    const full = path.join(job.folder, file)
    let descriptor: number | undefined
    try {
      descriptor = fs.openSync(full, O_RDONLY | (O_NOFOLLOW ?? 0) | (O_NONBLOCK ?? 0))
      const stats = fs.fstatSync(descriptor)
      if (!stats.isFile()) return "unreadable" as const
      // A parent folder may have become a symbolic link since the files were listed.
      if (fs.realpathSync(full) !== full) return "unreadable" as const
      return stats.size > job.limits.fileBytes ? ("large" as const) : fs.readFileSync(descriptor)
    } catch {
      return "unreadable" as const
    } finally {
      if (descriptor !== undefined) fs.closeSync(descriptor)
    }
  }

  const searchFile = (file: string, content: string) => {
    const matches: Array<Match> = []
    let number = 0
    for (let from = 0; from < content.length && found < job.limits.matches + 1;) {
      const newline = content.indexOf("\n", from)
      const end = newline < 0 ? content.length : newline
      const line = content.slice(from, content[end - 1] === "\r" && end > from ? end - 1 : end)
      number++
      const at = line.search(expression)
      if (at >= 0) {
        found++
        // A long line is truncated around the match.
        const start = line.length <= job.limits.line ? 0 : Math.max(0, at - 80)
        const part = line.slice(start, start + job.limits.line)
        const text = `${start > 0 ? "..." : ""}${part}${start + part.length < line.length ? "..." : ""}`
        if (found <= job.limits.matches) matches.push({ file, line: number, text })
      }
      from = end + 1
    }
    if (matches.length > 0) send({ type: "matches", matches })
  }

  for (const file of job.files) {
    if (found > job.limits.matches) break
    send({ type: "file", file })
    const loaded = load(file)
    if (loaded === "large") large++
    else if (loaded === "unreadable") unreadable++
    else if (loaded.subarray(0, 8192).includes(0)) binary++
    else {
      searched++
      searchFile(file, loaded.toString("utf8"))
    }
  }
  send({ type: "done", searched, binary, large, unreadable, more: found > job.limits.matches })
}

/** Refuses an invalid regular expression. */
export const checkExpression = (pattern: string): Effect.Effect<void, ToolFailure> =>
  Effect.try({
    try: () => void new RegExp(pattern),
    catch: (cause) =>
      new ToolFailure({
        type: "tool.input",
        message: `"pattern" is not a regular expression: ${cause instanceof Error ? cause.message.slice(0, 500) : ""}`
      })
  })

/**
 * Searches the files, relative to a canonical folder, in order. The expression must be accepted by `checkExpression`.
 */
export const searchLines = Effect.fn("LineSearch.search")(function* (options: {
  readonly folder: string
  readonly files: ReadonlyArray<string>
  readonly pattern: string
  readonly ignoreCase: boolean
  /** For tests; 15 seconds by default. */
  readonly millis?: number
}) {
  const { files, folder, ignoreCase, pattern } = options
  const flags = ignoreCase ? "i" : ""
  const { fileBytes, line, matches: maximum } = searchLimits
  const workerData: Job = { folder, files, source: pattern, flags, limits: { fileBytes, line, matches: maximum } }
  return yield* Effect.async<SearchResult, ToolFailure>((resume) => {
    const matches: Array<Match> = []
    let current: string | undefined
    let searched = 0
    const broken = new ToolFailure({ type: "tool.execution", message: "the search broke; try a smaller folder" })
    const worker = new Worker(`(${program.toString()})()`, {
      eval: true,
      workerData,
      env: {},
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: 512 }
    })
    const stop = () => {
      clearTimeout(timer)
      void worker.terminate()
    }
    const finish = (result: Effect.Effect<SearchResult, ToolFailure>) => {
      stop()
      resume(result)
    }
    // A system timer, not the Effect clock, because it bounds processor time.
    const timer = setTimeout(() => {
      const rest = { binary: 0, large: 0, unreadable: 0, more: true, stoppedIn: current }
      finish(Effect.succeed({ matches, searched: Math.max(0, searched - 1), ...rest }))
    }, options.millis ?? searchLimits.millis)
    worker.on("message", (message: Message) => {
      switch (message.type) {
        case "file":
          current = message.file
          searched++
          return
        case "matches":
          matches.push(...message.matches)
          return
        case "done": {
          const { type: _type, ...counts } = message
          return finish(Effect.succeed({ matches, ...counts, stoppedIn: undefined }))
        }
      }
    })
    worker.on("error", () => finish(broken))
    worker.on("exit", () => finish(broken))
    return Effect.sync(stop)
  })
})
