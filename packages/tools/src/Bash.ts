/**
 * The tool `bash`: runs a shell command, in a process of its own or in the session's live shell (`CommandRunner.ts`).
 * Without a sandbox, the command has the host user's authority, and the permission is the boundary, judged by the commands
 * of the line. Spec: TO-12, TO-61..TO-66, TO-118, TO-119, TO-130..TO-137, BR-1, BR-20, SB-1.
 */
import { createHash } from "node:crypto"
import * as path from "node:path"
import { StringDecoder } from "node:string_decoder"
import * as Tool from "@effect/ai/Tool"
import { Duration, Effect, Fiber, Option, Schema, Stream } from "effect"
import { childEnvironment, Granted } from "@daybook/core/child/ChildEnvironment"
import { bounded, allowance, watch } from "@daybook/core/child/SandboxWatch"
import { Sandbox, start as startConfined } from "@daybook/core/child/Sandbox"
import { type Chunk, runShell } from "@daybook/core/child/ShellProcess"
import type { Agent } from "@daybook/core/domain/Agent"
import { literal } from "@daybook/core/domain/Rule"
import { ToolFailure } from "@daybook/core/domain/ToolError"
import type { ToolOutput } from "@daybook/core/domain/ToolOutput"
import { type CommandLine, readCommandLine } from "@daybook/core/permission/CommandLine"
import { whyAsked, changesShell, verdictAfter } from "@daybook/core/permission/CommandRules"
import { Permission } from "@daybook/core/permission/Permission"
import { countLines } from "@daybook/core/support/TextBounds"
import { define, type ToolCall } from "@daybook/core/tool/ToolDefinition"
import { LocationFiles } from "@daybook/core/workspace/LocationFiles"
import { type OutputFile, outputLimits, ToolOutputStore } from "@daybook/core/workspace/ToolOutputStore"
import type { ToolContent } from "@daybook/log/domain/Values"
import { type CommandPlace, type CommandRequest, CommandRunner, type CommandEnd } from "./CommandRunner.ts"
import { optional } from "@daybook/log/support/Optional"

// What a command line shows about folders before it runs: warnings that advise, and are no boundary (TO-118).

const maximumPaths = 10
const word = /(^|[\s"'`=<>|;&(:])((?:~|\/)[^\s"'`<>|;&():]*)/g
/** Paths that every command may name. */
const harmless = /^\/(?:dev\/(?:null|zero|stdin|stdout|stderr|tty|fd\/\d+)|(?:usr\/(?:local\/)?)?bin\/[\w.-]+)?$/

/** The absolute paths that a command names outside a folder. */
export const pathsOutside = (command: string, folder: string): ReadonlyArray<string> => {
  const found = new Set<string>()
  for (const [, before, name = ""] of command.matchAll(word)) {
    // This is the middle of a URL.
    if (before === ":" && name.startsWith("//")) continue
    const inside = name.startsWith("/") && !path.relative(folder, path.resolve(name)).startsWith("..")
    if (!inside && !harmless.test(name)) found.add(name)
    if (found.size === maximumPaths) break
  }
  return [...found]
}

/** The folder that a line enters which does nothing else, from the folder `cwd`. */
const entered = (line: CommandLine, cwd: string): string | undefined => {
  if ("unread" in line || line.loose.length > 0 || line.defines.length > 0) return undefined
  const [first, second] = line.commands
  if (first === undefined || second !== undefined) return undefined
  const [name, target, more] = first.words
  const isPlain = first.assignments.length === 0 && first.redirects.length === 0 && more === undefined
  return isPlain && name?.text === "cd" && target?.fixed === true ? path.resolve(cwd, target.text) : undefined
}

const entering = (folder: string): string => `cd '${folder.replaceAll("'", `'\\''`)}'`

// Keeps the beginning and the end of a long output in bounded memory.

export const windowLimits = { headLines: 500, headBytes: 12 * 1024, tailLines: 1_400, tailBytes: 34 * 1024 } as const

/** The end of a text within both limits, from the beginning of a line if possible. */
const cutTail = (text: string) => {
  let start = text.length
  let [lines, bytes] = [0, 0]
  while (start > 0 && lines < windowLimits.tailLines) {
    const newline = start < 2 ? -1 : text.lastIndexOf("\n", start - 2)
    const size = Buffer.byteLength(text.slice(newline + 1, start))
    if (bytes + size > windowLimits.tailBytes) break
    ;[start, lines, bytes] = [newline + 1, lines + 1, bytes + size]
  }
  // The last line exceeds the limit. A UTF-16 unit takes at most three bytes, so this slice fits.
  return lines === 0 ? text.slice(-Math.floor(windowLimits.tailBytes / 3)) : text.slice(start)
}

/** The beginning of a text within both limits, in whole lines. */
const cutStart = (text: string) => {
  let end = 0
  for (let lines = 0; lines < windowLimits.headLines; lines++) {
    const newline = text.indexOf("\n", end)
    if (newline < 0 || Buffer.byteLength(text.slice(0, newline + 1)) > windowLimits.headBytes) break
    end = newline + 1
  }
  return text.slice(0, end)
}

export const makeOutputWindow = () => {
  const decoders = { stdout: new StringDecoder("utf8"), stderr: new StringDecoder("utf8") }
  const whole = windowLimits.headBytes + windowLimits.tailBytes
  // `tail` holds the whole output until it exceeds the window; then `head` keeps its beginning.
  let [head, tail] = ["", ""]
  let [bytes, lines, cut] = [0, 0, false]

  const append = (text: string) => {
    tail += text
    for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines++
    if (!cut && (Buffer.byteLength(tail) > whole || lines > windowLimits.headLines + windowLimits.tailLines)) {
      cut = true
      head = cutStart(tail)
      tail = tail.slice(head.length)
    }
    if (cut && tail.length > 4 * windowLimits.tailBytes) tail = cutTail(tail)
  }

  return {
    add: (stream: "stdout" | "stderr", chunk: Uint8Array) => {
      bytes += chunk.length
      append(decoders[stream].write(Buffer.from(chunk)))
    },
    /** Bytes so far. */
    bytes: () => bytes,
    /** Whether the output is truncated. */
    cut: () => cut,
    /** The end of the output, at most `limit` characters. */
    latest: (limit: number) => (tail.length < limit ? `${head}${tail}` : tail).slice(-limit),
    /** The shown text; `where` is appended to the truncation note. */
    render: (where: string) => {
      append(decoders.stdout.end() + decoders.stderr.end())
      if (!cut) return tail
      const end = cutTail(tail)
      const shown = countLines(head) + countLines(end)
      const marker =
        `[Cut: ${shown} of ${Math.max(lines, shown)} lines, ${Buffer.byteLength(head) + Buffer.byteLength(end)} of ` +
        `${bytes} bytes are shown, the rest is left out here.${where}]\n`
      return `${head}${marker}${end}`
    }
  }
}

// Runs each command in a process of its own, in the host's sandbox if there is one.

const stopped = (why: NonNullable<CommandEnd["stopped"]>): CommandEnd => ({ code: null, signal: null, stopped: why })

const start = Effect.fnUntraced(function* ({ confined, cwd, env, seconds, text }: CommandRequest) {
  const bounds = confined === undefined ? [] : yield* bounded(confined.limits)
  const shell =
    confined === undefined
      ? yield* runShell({ command: text, cwd, env })
      : yield* Effect.catchTag(
          startConfined(confined.launch, (prefix) =>
            runShell({ command: text, cwd: "/", env: confined.env, prefix: [...bounds, ...prefix] })
          ),
          "SandboxRefused",
          ({ message }) => new ToolFailure({ type: "sandbox.denied", message })
        )
  const passed =
    confined === undefined
      ? Effect.never
      : Effect.map(
          watch(() => shell.pid, confined.limits),
          stopped
        )
  const exit: Effect.Effect<CommandEnd> = Effect.timeoutTo(Effect.raceFirst(shell.exit, passed), {
    duration: Duration.seconds(seconds),
    onSuccess: (ended) => ended,
    onTimeout: () => stopped("timeout")
  })
  const fiber = yield* Effect.forkScoped(exit)
  return { output: shell.output, exit: Fiber.join(fiber), end: shell.end }
})

/** A process for each command. Nothing of one is left for the next. */
const processPlace: CommandPlace = { cwd: undefined, before: "", start }

const bashLimits = {
  /** Seconds. */
  timeout: 120,
  maximumTimeout: 600,
  /** More output ends the command: a disk is finite. */
  outputBytes: 256 * 1024 * 1024,
  progressCharacters: 2_000
}

/** Lines of late output. An output leaves room for them within the limits of a result. */
const lateLines = 60

const BashTool = Tool.make("bash", {
  description:
    "Runs a shell command in the working directory and waits for its end. Standard input is closed. Processes that it " +
    "leaves in the background end with it. A long output is shown in part, and the whole is kept in a file.",
  parameters: {
    command: Schema.NonEmptyString.annotations({ description: "The command, as for sh -c" }),
    workdir: optional(Schema.NonEmptyString).annotations({
      description: "Folder to run in; the working directory by default"
    }),
    timeout: optional(Schema.Int.pipe(Schema.between(1, bashLimits.maximumTimeout))).annotations({
      description: `Seconds until the command is ended; ${bashLimits.timeout} by default`
    })
  },
  success: Schema.Struct({
    exitCode: Schema.NullOr(Schema.Int),
    signal: optional(Schema.String),
    /** Why the runtime ended the command. */
    stopped: optional(Schema.Literal("timeout", "output", "processes", "memory")),
    /** The folder of the live shell, if it is another one than before. */
    cwd: optional(Schema.String),
    bytes: Schema.Int,
    warnings: Schema.Array(Schema.String),
    notices: Schema.Array(Schema.String),
    outputPath: optional(Schema.String),
    /** What jobs of earlier commands printed. */
    late: Schema.String,
    text: Schema.String
  })
})
type Result = typeof BashTool.successSchema.Type

const liveDescription =
  "Runs a shell command in the session's live shell and waits for its end. The shell stays: its folder, variables, " +
  "functions and background jobs (start servers with &) are there for the next command. Standard input is closed. Calls " +
  "run one after the other. Stopping a command keeps the shell. A shell that ended is replaced by a new one, which the " +
  "result says. Secrets in an output are shown as <redacted>. A long output is shown in part, and the whole is kept in a file."

/** Loaded at the first command, because most starts run none. */
const shellGrammar = Effect.promise(() => import("unbash"))

const clip = (text: string, limit: number) => (text.length <= limit ? text : `${text.slice(0, limit)}...`)

/** Records the command's output in the window, and in a file as soon as the window truncates it. */
const makeRecorder = (store: ToolOutputStore["Type"], call: ToolCall, window: OutputWindow, maximum: number) => {
  /** Output that is not in a file yet; undefined once the window truncates it. */
  let held: Array<Uint8Array> | undefined = []
  let file: OutputFile | undefined
  return {
    file: () => file,
    /** False if the command has printed too much. */
    take: Effect.fnUntraced(function* ({ bytes, stream }: Chunk) {
      window.add(stream, bytes)
      if (file !== undefined) yield* file.write(bytes)
      held?.push(bytes)
      if (held !== undefined && window.cut()) {
        file = yield* store.open(call)
        if (file !== undefined) yield* file.write(Buffer.concat(held))
        held = undefined
      }
      const text = window.latest(bashLimits.progressCharacters)
      yield* call.progress({ structured: { bytes: window.bytes() }, content: [{ type: "text", text }] })
      return window.bytes() <= maximum
    })
  }
}

type Why = NonNullable<Result["stopped"]>

const describeStop = (why: Why, { confined, maximum, seconds }: Run): string => {
  switch (why) {
    case "output":
      return `Stopped: it printed more than ${maximum} bytes.`
    case "timeout":
      return `Stopped after ${seconds} seconds; set "timeout" (up to ${bashLimits.maximumTimeout}) if it needs longer.`
    case "processes":
    case "memory":
      return `Stopped: ${allowance(why, confined?.limits ?? { processes: 0, bytes: 0 })}.`
  }
}

const describe = ({ code, signal }: CommandEnd, why: Why | undefined, command: Run): ReadonlyArray<string> => {
  if (why !== undefined) return [describeStop(why, command)]
  if (code === 0) return []
  const ended = signal === null ? `Exit code ${code}.` : `Ended by signal ${signal}.`
  return command.confined === undefined ? [ended] : [ended, command.confined.summary]
}

interface Run extends CommandRequest {
  /** Bytes of output. */
  readonly maximum: number
  readonly warnings: ReadonlyArray<string>
}

/** The end of late output, within what the output leaves of the limits of a result. */
const shownLate = (late: string, text: string): string => {
  const room = Math.max(500, Math.floor((outputLimits.bytes - 2_048 - Buffer.byteLength(text)) / 3))
  const last = late.split("\n").slice(-lateLines).join("\n").slice(-room)
  return last === "" || last === late ? last : `[...]\n${last}`
}

const run = Effect.fnUntraced(function* (
  store: ToolOutputStore["Type"],
  call: ToolCall,
  { start }: CommandPlace,
  command: Run
) {
  const { maximum, warnings } = command
  const window = makeOutputWindow()
  const recorder = makeRecorder(store, call, window, maximum)
  const running = yield* start(command)
  const pump = yield* Effect.forkScoped(Stream.runForEachWhile(running.output, recorder.take))
  const ended = Effect.as(running.exit, false)
  // The pump ends early if it fails, if there is too much output, or if the command closes its output and continues.
  const pumped = Effect.flatMap(Fiber.join(pump), () => (window.bytes() > maximum ? Effect.succeed(true) : ended))
  const excess = yield* Effect.raceFirst(ended, pumped)
  yield* running.end
  // Output printed before the end may still be on its way.
  yield* Fiber.join(pump)
  const last = yield* running.exit
  const why: Why | undefined = excess ? "output" : last.stopped
  const { cwd, late = "", notices = [], signal } = last
  const file = recorder.file()
  const where =
    file === undefined
      ? " It was not kept."
      : ` The whole is in ${file.path}: read it with path ${JSON.stringify(file.reference)}.`
  const text = window.render(where)
  return {
    exitCode: why === undefined ? last.code : null,
    ...(why !== undefined ? { stopped: why } : signal === null ? {} : { signal }),
    ...(cwd === undefined ? {} : { cwd }),
    bytes: window.bytes(),
    warnings,
    notices: [
      ...(text === "" ? ["No output."] : []),
      ...describe(last, why, command),
      ...(cwd === undefined ? [] : [`The shell is now in ${cwd}.`]),
      ...notices,
      ...warnings
    ],
    ...(file === undefined ? {} : { outputPath: file.path }),
    late: shownLate(late, text),
    text
  }
})

const render = ({ late, notices, outputPath, text, ...structured }: Result): ToolOutput => {
  const content: ReadonlyArray<ToolContent> = [
    ...(late === "" ? [] : [{ type: "text" as const, text: `[Printed by background jobs before:]\n${late}\n` }]),
    ...(text === "" ? [] : [{ type: "text" as const, text }]),
    ...(notices.length === 0 ? [] : [{ type: "text" as const, text: `[${notices.join(" ")}]` }])
  ]
  return { structured, content, ...(outputPath === undefined ? {} : { outputPaths: [outputPath] }) }
}

/** Names a state of a live shell: an approval that was given in it is for it alone. */
const fingerprint = (before: string): string => `shell:${createHash("sha256").update(before).digest("hex")}`

/** The command's sandbox, if the host configures one. */
const confine = (
  { confine: make }: Sandbox["Type"],
  root: string,
  cwd: string,
  env: Readonly<Record<string, string>>
) =>
  Effect.mapBoth(make({ cwd, env, writable: [root] }), {
    onSuccess: Option.getOrUndefined,
    onFailure: ({ _tag, message }) =>
      new ToolFailure({ type: _tag === "SandboxRefused" ? "sandbox.denied" : "sandbox.unavailable", message })
  })

/** `bash` in the current Location. A working folder outside it first needs `external_directory`. */
export const makeBash = Effect.fnUntraced(function* (options: { readonly outputBytes?: number } = {}) {
  const maximum = options.outputBytes ?? bashLimits.outputBytes
  const files = yield* LocationFiles
  const permission = yield* Permission
  const store = yield* ToolOutputStore
  const grants = yield* Granted
  const sandbox = yield* Sandbox
  const runner = yield* CommandRunner
  const liveFor = ({ bash }: Agent) => (bash === "live" ? runner.live : undefined)
  return define(BashTool, {
    render,
    describe: (agent) => (liveFor(agent) === undefined ? undefined : liveDescription),
    handler: Effect.fn("Tool.bash")(function* ({ command, timeout = bashLimits.timeout, workdir }, call) {
      const live = liveFor(call.agent)
      // Before the first wait: calls of one turn enter in their order (TO-136).
      const place = live === undefined ? processPlace : yield* live.enter(call)
      const root = yield* files.resolveFolder(".")
      const grammar = yield* shellGrammar
      const line = readCommandLine(grammar, command)
      const own = yield* workdir === undefined
        ? Effect.orElse(files.resolveFolder(place.cwd ?? "."), () => files.resolveFolder("."))
        : files.resolveFolder(workdir)
      const target = own.inside || workdir !== undefined ? undefined : entered(line, own.real)
      const next = target === undefined ? own : yield* Effect.orElseSucceed(files.resolveFolder(target), () => own)
      // A shell that left the Location returns without a question: the line runs in the folder that it enters.
      const folder = next.inside ? next : own
      const env = childEnvironment(process.env, grants.bash)
      const early = yield* confine(sandbox, root.real, folder.real, env)
      if (!folder.inside) {
        yield* permission
          .authorize({
            ...call,
            tool: "bash",
            permission: "external_directory",
            subject: Effect.succeed({ type: "external_directory", folder: folder.real, command }),
            resources: [folder.real],
            title: `Run a command in ${folder.real}, outside the Location`,
            always: [literal(folder.real)]
          })
          .pipe(
            Effect.catchTag("ToolFailure", ({ message, type }) =>
              workdir !== undefined
                ? new ToolFailure({ type, message })
                : new ToolFailure({
                    type,
                    message: `${message} The shell is in ${folder.real}, outside the Location; to return, run: ${entering(root.real)}`
                  })
            )
          )
      }
      // In a sandbox these paths are other files, or do not exist.
      const outside = early === undefined ? pathsOutside(command, root.real) : []
      const warnings =
        outside.length === 0 ? [] : [`The command names paths outside the Location: ${outside.join(", ")}.`]
      yield* permission.authorize({
        ...call,
        tool: "bash",
        permission: "bash",
        subject: Effect.succeed({ type: "command", command, folder: folder.resource, warnings }),
        resources: [command],
        confined: early !== undefined && sandbox.settings.autoAllow === true,
        title: [`Run ${clip(command, 2_000)}`, `in ${folder.resource}`, ...warnings].join("\n"),
        always: [literal(command)],
        ...(place.before === "" ? {} : { definition: fingerprint(place.before) }),
        verdict: (rules, approvals) =>
          verdictAfter({ grammar, permission: "bash", rules, approvals }, place.before, line),
        because: (rules, approvals) => [
          ...whyAsked({ grammar, permission: "bash", rules, approvals }, line),
          ...(place.before === ""
            ? []
            : [`earlier commands changed the shell: ${clip(place.before.replaceAll("\n", "; "), 300)}`])
        ]
      })
      if (folder.inside) yield* files.recheck(folder.real)
      // Computed again: the folders' content may have changed during the question.
      const confined = early === undefined ? early : yield* confine(sandbox, root.real, folder.real, env)
      return yield* run(store, call, place, {
        text: command,
        cwd: folder.real,
        elsewhere: workdir !== undefined,
        home: root.real,
        env,
        confined,
        seconds: timeout,
        changes: live !== undefined && changesShell(grammar, line),
        maximum,
        warnings
      })
    })
  })
})

type OutputWindow = ReturnType<typeof makeOutputWindow>
