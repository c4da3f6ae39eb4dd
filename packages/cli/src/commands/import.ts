/** `daybook import`: turns session logs of other tools into sessions. Spec: CL-220..CL-226. */
import { existsSync } from "node:fs"
import { opendir, stat } from "node:fs/promises"
import { homedir } from "node:os"
import { join, resolve, sep } from "node:path"
import { Effect, Either, Layer, Option } from "effect"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as Glob from "@daybook/core/glob/Glob"
import { walk } from "@daybook/core/glob/Walk"
import { importLog, type ImportReport } from "@daybook/formats/import/Import"
import * as LogSource from "@daybook/formats/import/LogSource"
import { SessionStore } from "@daybook/log/store/SessionStore"
import * as Garbage from "@daybook/log/support/Garbage"
import { codeOf } from "@daybook/log/support/SystemError"
import * as Flags from "../arguments/Flags.ts"
import { type FieldValues, verb } from "../arguments/Verb.ts"
import * as DatabasePath from "../config/DatabasePath.ts"
import * as PlaceStore from "../host/PlaceStore.ts"
import { failureOf } from "../render/Failure.ts"
import { oneLine } from "../render/Plain.ts"
import { many, sizeText, thousands } from "../support/Amounts.ts"
import { ImportIncomplete, isMissing, NotFound } from "../support/Errors.ts"
import * as Signal from "../support/Signal.ts"
import { Output, writeJson } from "../terminal/Output.ts"

interface Source {
  readonly path: string
  readonly bytes: number
}

/** The folders where the tools keep their logs. */
const knownFolders = (home: string = homedir()): ReadonlyArray<readonly [tool: string, folder: string]> => [
  ["Claude Code", join(home, ".claude", "projects")],
  ["Codex", join(home, ".codex", "sessions")],
  ["Codex archive", join(home, ".codex", "archived_sessions")],
  ["pi", join(home, ".pi", "agent", "sessions")],
  ["omp", join(home, ".omp", "agent", "sessions")],
  ["xcsh", join(home, ".xcsh", "agent", "sessions")],
  ["threads", join(home, ".agent", "sessions")]
]

/** Early rollouts of Codex are one JSON object, and old ones compressed. */
const isLog = (name: string): boolean => /\.jsonl$|^rollout-.*\.json(?:l\.zst)?$/.test(name)

/** While Codex compresses a rollout or takes one out of its archive, both files exist. */
const isCopy = (path: string, paths: ReadonlySet<string>): boolean =>
  path.endsWith(".zst") && paths.has(path.slice(0, -".zst".length))

const sourceOf = async (path: string): Promise<Source> => ({ path, bytes: (await stat(path)).size })

/** The logs below a folder, by path. Symbolic links are not followed. */
const below = async (folder: string): Promise<ReadonlyArray<Source>> => {
  const paths = new Set<string>()
  for await (const entry of await opendir(folder, { recursive: true }))
    if (entry.isFile() && isLog(entry.name)) paths.add(join(entry.parentPath, entry.name))
  const sources: Array<Source> = []
  for (const path of [...paths].sort()) if (!isCopy(path, paths)) sources.push(await sourceOf(path))
  return sources
}

const matching = async (pattern: string): Promise<ReadonlyArray<Source>> => {
  const parts = resolve(pattern).split(sep)
  const first = parts.findIndex(Glob.isGlob)
  const folder = parts.slice(0, first).join(sep) || sep
  const glob = Glob.compile(parts.slice(first).join("/"))
  if (glob === undefined) return []
  const { files } = await walk({
    folder,
    glob,
    signal: new AbortController().signal,
    most: Number.MAX_SAFE_INTEGER,
    skipped: new Set()
  })
  const sources: Array<Source> = []
  for (const file of files.toSorted()) sources.push(await sourceOf(join(folder, file)))
  return sources
}

const found = async (path: string): Promise<ReadonlyArray<Source> | undefined> => {
  const given = await stat(path).catch(() => undefined)
  if (given?.isDirectory() === true) return below(resolve(path))
  if (given !== undefined) return [await sourceOf(resolve(path))]
  return Glob.isGlob(path) ? matching(path) : undefined
}

const find = Effect.fn("ImportSources.find")(function* (paths: ReadonlyArray<string>) {
  const sources = new Map<string, Source>()
  for (const path of paths) {
    const unread = (reason: string) => new NotFound({ message: `${oneLine(path, 400)}: ${reason}` })
    const logs = yield* Effect.tryPromise({
      try: () => found(path),
      catch: (cause) => unread(codeOf(cause, String(cause)))
    })
    if (logs === undefined) return yield* unread("there is no such file or folder")
    if (logs.length === 0) return yield* unread("it holds no logs (*.jsonl, rollout-*.json, rollout-*.jsonl.zst)")
    for (const source of logs) sources.set(source.path, source)
  }
  return [...sources.values()]
})

/** The logs in the known folders. A folder that does not exist holds none. */
const known = Effect.promise(() =>
  Promise.all(
    knownFolders().map(async ([tool, folder]) => ({ tool, folder, sources: await below(folder).catch(() => []) }))
  )
)

const verbs: Readonly<Record<ImportReport["status"], string>> = {
  imported: "imported",
  continued: "continued",
  grown: "added",
  unchanged: "unchanged"
}

const moneyText = (cost: number): string => (cost === 0 ? "" : `, $${cost.toFixed(cost < 0.1 ? 4 : 2)}`)

/** One line for a log, then one for each problem. */
const reportText = (path: string, report: ImportReport, dryRun: boolean): string => {
  const { added, answers, first, hidden, others, problems, prompts, records, results, sessionID, title, usage } = report
  const met = Object.values(problems).reduce((total, each) => total + each, 0)
  const parts = [
    many(prompts, "prompt"),
    many(answers, "answer"),
    many(results, "result"),
    ...(others === 0 ? [] : [`${others} other`]),
    ...(hidden === 0 ? [] : [`${hidden} not shown to the model`])
  ].join(", ")
  const did = dryRun ? "would be" : verbs[report.status]
  const what = report.status === "grown" || report.status === "continued" ? `${added} of ${records}` : `${records}`
  const named = title === undefined ? "" : ` "${oneLine(title, 60)}"`
  const read = thousands(usage.input + usage.cacheRead + usage.cacheWrite)
  const tokens = `${read} tokens in, ${thousands(usage.output)} out${moneyText(usage.cost)}`
  const lines = [
    `${oneLine(path, 400)}`,
    `  ${did} ${sessionID}${named} from ${report.dialect}: ${what} records (${parts}); ${tokens}`,
    ...first.map(
      ({ details, kind, place }) => `  line ${place.line}, byte ${place.offset}: ${kind}: ${oneLine(details, 400)}`
    ),
    ...(met > first.length ? [`  ${many(met - first.length, "more problem")}`] : [])
  ]
  return `${lines.join("\n")}\n`
}

export const folderText = (tool: string, folder: string, files: number, bytes: number): string =>
  `${tool.padEnd(14)} ${many(files, "log").padStart(10)}  ${sizeText(bytes).padStart(8)}  ${oneLine(folder, 400)}\n`

const width = 24

/** A bar that shows how much is done. */
export const barText = (done: number, total: number, path: string): string => {
  const part = total === 0 ? 1 : Math.min(1, done / total)
  const full = Math.round(part * width)
  const bar = `${"#".repeat(full)}${".".repeat(width - full)}`
  return `[${bar}] ${String(Math.floor(part * 100)).padStart(3)} % of ${sizeText(total)}  ${oneLine(path, 60)}`
}

/** Milliseconds between two pictures of the bar. */
const interval = 100

/** A bar on a terminal, redrawn in place. */
const makeBar = Effect.map(Output, (output) => {
  const shown = process.stderr.isTTY === true
  let last = 0
  return {
    draw: (done: number, total: number, path: string) =>
      Effect.suspend(() => {
        const now = performance.now()
        if (!shown || now - last < interval) return Effect.void
        last = now
        return Effect.ignore(output.draw("stderr", `\r\u001b[2K${barText(done, total, path)}`))
      }),
    clear: Effect.suspend(() => (shown ? Effect.ignore(output.draw("stderr", "\r\u001b[2K")) : Effect.void))
  }
})

/** The errors that say to import the log as a new session. */
const changed = new Set(["SourceDiffers", "SessionContinued", "ImportDiffers"])

/** What kept a log from being imported, in words and by type. */
const failed = (path: string, error: unknown, json: boolean) => {
  const { sentence: cause = "it could not be imported" } = failureOf(error)
  const type = typeof error === "object" && error !== null && "_tag" in error ? String(error._tag) : "unknown"
  const sentence = changed.has(type) ? `${cause} (daybook import --as-new)` : cause
  return json
    ? writeJson({ path, error: { type, message: sentence } })
    : Effect.flatMap(Output, ({ write }) => write(`${oneLine(path, 400)}\n  not imported: ${oneLine(sentence, 400)}\n`))
}

/** The folder of the session, if it is gone. */
const missingFolder = Effect.fnUntraced(function* ({ sessionID }: ImportReport) {
  const session = yield* Effect.option((yield* SessionStore).get(sessionID))
  return Option.filterMap(session, ({ location: { directory } }) =>
    existsSync(directory) ? Option.none() : Option.some(directory)
  )
})

const importAll = Effect.fn("Command.import")(function* (request: Request) {
  Garbage.bound()
  const output = yield* Output
  const sources = yield* find(request.paths)
  const total = sources.reduce((sum, { bytes }) => sum + bytes, 0)
  const bar = yield* makeBar
  let [done, failures] = [0, 0]
  for (const { bytes, path } of sources) {
    const before = done
    const outcome = yield* Effect.either(
      importLog((ends) => LogSource.open(path, request.dialect ?? "auto", ends), {
        directory: homedir(),
        dryRun: request.dryRun,
        asNew: request.asNew,
        // The text of a compressed log is longer than its file.
        progress: (offset) => bar.draw(before + Math.min(offset, bytes), total, path)
      })
    )
    done += bytes
    yield* bar.clear
    if (Either.isLeft(outcome)) {
      failures += 1
      yield* failed(path, outcome.left, request.json)
      continue
    }
    const report = outcome.right
    yield* request.json
      ? writeJson({ path, dryRun: request.dryRun, ...report })
      : output.write(reportText(path, report, request.dryRun))
    const gone = Option.getOrUndefined(yield* missingFolder(report))
    if (gone !== undefined && !request.json)
      yield* output.note(`  its folder ${oneLine(gone, 400)} does not exist; create it to prompt the session\n`)
  }
  if (failures > 0) return yield* new ImportIncomplete({ message: `${many(failures, "log")} not imported` })
})

const list = Effect.fn("Command.import.list")(function* (json: boolean) {
  const output = yield* Output
  for (const { folder, sources, tool } of yield* known) {
    const bytes = sources.reduce((sum, source) => sum + source.bytes, 0)
    if (json) yield* writeJson({ tool, folder, logs: sources.length, bytes })
    else if (sources.length > 0) yield* output.write(folderText(tool, folder, sources.length, bytes))
  }
  if (!json) yield* output.note("nothing was imported; name a folder or a log to import it\n")
})

/** Imports the logs of the paths, or lists what could be imported. */
const run = (request: Request) =>
  request.paths.length === 0
    ? list(request.json)
    : Effect.gen(function* () {
        const importing = (to: DatabasePath.Place) =>
          Signal.stopping("stopped; import the same logs again to continue")(importAll(request)).pipe(
            Effect.provide(Layer.merge(PlaceStore.layer(to), NodeFileSystem.layer))
          )
        if (!request.dryRun) return yield* importing(yield* DatabasePath.writable)
        // A rehearsal creates no database.
        const inMemory = DatabasePath.fileAt(":memory:")
        const place = (yield* DatabasePath.exists) ? yield* DatabasePath.place : inMemory
        yield* Effect.catchIf(importing(place), isMissing, () => importing(inMemory))
      })

const dialects = ["auto", "xcsh", "pi", "thread", "claude-code", "codex"] as const

const given = {
  paths: Flags.many("PATH"),
  dialect: Flags.choice("dialect", dialects, "the format of the logs (default: auto, by their content)"),
  dryRun: Flags.toggle("dry-run", "read the logs and report, but store nothing"),
  asNew: Flags.toggle("as-new", "import the logs as other sessions beside earlier imports of them"),
  json: Flags.json
}

type Request = FieldValues<typeof given>

export const importVerb = verb({
  name: "import",
  summary: "import session logs of other tools",
  words: "[PATH...]",
  details: [
    "PATH is a log file, a folder that is searched for logs, or a quoted pattern such as '~/logs/**/*.jsonl'. Without PATH " +
      "it lists the logs in the folders where the tools keep them, and imports nothing. The logs are only read.",
    "An imported session is an ordinary session in the folder that its log names, also if that folder no longer exists: " +
      "prompt it, branch it, export it. Importing a log again adds what the log has more than before. A log that changed " +
      "otherwise, or whose session was continued here, is refused: use --as-new.",
    "Damaged parts of a log are skipped and reported with line and byte offset. The exit code is 1 if a log could not be " +
      "imported."
  ],
  given,
  examples: [
    ["daybook import", "lists the logs on this machine"],
    ["daybook import ~/.claude/projects", "imports the sessions of Claude Code"],
    ["daybook import --dry-run session.jsonl", "shows what one log holds"]
  ],
  run
})
