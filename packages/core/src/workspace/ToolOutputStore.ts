/**
 * Bounds the output that a tool shows the model, and keeps the complete output in files that the model can read; a
 * variant keeps nothing. Files are created exclusively, readable only by their owner, and removed after their
 * retention. Process-global. Spec: TO-21..TO-26.
 */
import type * as PlatformError from "@effect/platform/Error"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import { Clock, Context, Duration, Effect, Layer, Option, Schedule, Schema, type Scope } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { JsonRecord, ToolContent } from "@daybook/log/domain/Values"
import { ToolStorageError } from "../domain/ToolError.ts"
import type { ToolOutput } from "../domain/ToolOutput.ts"
import { countLines, cutHead } from "../support/TextBounds.ts"

/** Limits of an inline output. A longer output is kept in a file. */
export const outputLimits = { lines: 2_000, bytes: 50 * 1024, mediaBytes: 5 * 1024 * 1024 } as const

/** The prefix under which `read` finds a kept output of its session: `tool-output:<name>`. */
export const referencePrefix = "tool-output:"

/** The reference of the output kept at a path: `<session>+<name>`. */
export const referenceOf = (path: string): string => {
  const file = path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1)
  return `${referencePrefix}${file.slice(file.indexOf("+") + 1)}`
}

/** A result's inline files exceed the limit. */
export class MediaLimitError extends Schema.TaggedError<MediaLimitError>("@daybook/core/MediaLimitError")(
  "MediaLimitError",
  { mime: Schema.String, bytes: Schema.Int, limit: Schema.Int }
) {
  override get message() {
    return `the result holds ${this.bytes} bytes of files (${this.mime}); at most ${this.limit} fit in a result`
  }
}

/** The output's call, which determines the file name. */
export interface OutputOwner {
  readonly sessionID: SessionID
  readonly callID: string
}

/** A file for an output that is still growing. */
export interface OutputFile {
  readonly path: string
  /** Its name for `read`. */
  readonly reference: string
  readonly write: (bytes: Uint8Array) => Effect.Effect<void, ToolStorageError>
}

export class ToolOutputStore extends Context.Tag("@daybook/core/ToolOutputStore")<
  ToolOutputStore,
  {
    /**
     * Bounds an output for storage and display. A longer text is kept in a file, truncated on a line boundary, and ends
     * with a line that says what is omitted and where the complete text is, or that it was not kept. Fails with
     * `MediaLimitError` if its files are too large.
     */
    readonly bound: (
      owner: OutputOwner,
      output: ToolOutput
    ) => Effect.Effect<ToolOutput, ToolStorageError | MediaLimitError>
    /** Creates a file for an output of unknown length; closed with the scope. Undefined if nothing is kept. */
    readonly open: (owner: OutputOwner) => Effect.Effect<OutputFile | undefined, ToolStorageError, Scope.Scope>
    /** The file of a reference of this session; none if this store does not create such names. */
    readonly locate: (sessionID: SessionID, reference: string) => Option.Option<string>
    /** The sessions that have files; none if the folder cannot be read. */
    readonly sessions: Effect.Effect<ReadonlySet<string>>
    /** Removes the files of these sessions. A failure is logged; the next start tries again. */
    readonly forget: (sessions: ReadonlySet<string>) => Effect.Effect<void>
    /** Removes files older than the retention. Runs every hour; a failure is logged and retried then. */
    readonly sweep: Effect.Effect<void>
  }
>() {}

/** Bytes of an inline file; 0 if the URI refers elsewhere. */
const inlineBytes = (uri: string): number => {
  if (!uri.startsWith("data:")) return 0
  const comma = uri.indexOf(",")
  if (!uri.slice(0, comma).endsWith(";base64")) return Buffer.byteLength(uri) - comma - 1
  const padding = uri.endsWith("==") ? 2 : uri.endsWith("=") ? 1 : 0
  return Math.floor(((uri.length - comma - 1) * 3) / 4) - padding
}

const isText = (item: ToolContent) => item.type === "text"

/** How many files one call may keep. */
const attempts = 100

type Created = { readonly name: string; readonly file: FileSystem.File }

/** Keeps a complete text in a file; undefined if nothing is kept. */
type Keep = (owner: OutputOwner, text: string) => Effect.Effect<StoredOutput | undefined, ToolStorageError>

type StoredOutput = Pick<OutputFile, "path" | "reference">

const pathsOf = (file: StoredOutput | undefined): ReadonlyArray<string> => (file === undefined ? [] : [file.path])

const bounding = (keep: Keep): ToolOutputStore["Type"]["bound"] => {
  const boundText = Effect.fnUntraced(function* (owner: OutputOwner, content: ReadonlyArray<ToolContent>) {
    const whole = content.flatMap((item) => (item.type === "text" ? [item.text] : [])).join("\n")
    const [lines, bytes] = [countLines(whole), Buffer.byteLength(whole)]
    if (lines <= outputLimits.lines && bytes <= outputLimits.bytes) return { content, paths: [] }
    const file = yield* keep(owner, whole)
    // Leaves room for the marker, which is part of the shown text.
    const cut = cutHead(whole, { lines: outputLimits.lines - 2, bytes: outputLimits.bytes - 1024 })
    const offset = cut.shown.endsWith("\n") ? cut.lines + 1 : 1
    const where =
      file === undefined
        ? "The rest was not kept."
        : `The whole is in ${file.path}: read it with path ${JSON.stringify(file.reference)} and offset ${offset}.`
    const marker = `[Cut: this is the beginning, ${cut.lines} of ${lines} lines, ${cut.bytes} of ${bytes} bytes. ${where}]`
    const shown: ToolContent = {
      type: "text",
      text: cut.shown === "" || cut.shown.endsWith("\n") ? `${cut.shown}${marker}` : `${cut.shown}\n${marker}`
    }
    return { content: [shown, ...content.filter((item) => !isText(item))], paths: pathsOf(file) }
  })

  /** Bounds `structured`: bounded text if the model reads it, else kept in a file or omitted. */
  const boundStructured = Effect.fnUntraced(function* (owner: OutputOwner, output: ToolOutput) {
    const json = JSON.stringify(output.structured)
    const bytes = Buffer.byteLength(json)
    if (bytes <= outputLimits.bytes) return { ...output, paths: [] }
    const structured: JsonRecord = { truncated: true, bytes }
    if (output.content.length === 0) {
      const text = JSON.stringify(output.structured, undefined, 2)
      return { structured, content: [{ type: "text" as const, text }], paths: [] }
    }
    const file = yield* keep(owner, json)
    const where = file === undefined ? {} : { path: file.path }
    return { structured: { ...structured, ...where }, content: output.content, paths: pathsOf(file) }
  })

  return Effect.fn("ToolOutputStore.bound")(function* (owner, output) {
    let media = 0
    for (const item of output.content) {
      if (item.type !== "file") continue
      media += inlineBytes(item.uri)
      if (media > outputLimits.mediaBytes) {
        return yield* new MediaLimitError({ mime: item.mime, bytes: media, limit: outputLimits.mediaBytes })
      }
    }
    const structured = yield* boundStructured(owner, output)
    const text = yield* boundText(owner, structured.content)
    const outputPaths = [...(output.outputPaths ?? []), ...structured.paths, ...text.paths]
    return {
      structured: structured.structured,
      content: text.content,
      ...(outputPaths.length === 0 ? {} : { outputPaths })
    }
  })
}

type StoreOptions = { readonly root: string; readonly retention: Duration.Duration }

/** `<session>+<call>.txt`: no session id contains `+`, so names of two sessions never collide. */
const fileName = (owner: OutputOwner, attempt: number) => {
  const call = owner.callID.replaceAll(/[^A-Za-z0-9._-]/g, "_").slice(0, 80)
  return `${owner.sessionID}+${call}${attempt === 0 ? "" : `+${attempt}`}.txt`
}

const sessionOf = (name: string): string => name.slice(0, name.indexOf("+"))

/** Removes the files that are gone. Another process may sweep too, so a missing file is not an error. */
const removeWhere = (
  fs: FileSystem.FileSystem,
  path: Path.Path,
  root: string,
  isGone: (file: string, name: string) => Effect.Effect<boolean>
) =>
  Effect.gen(function* () {
    if (!(yield* fs.exists(root))) return
    for (const name of yield* fs.readDirectory(root)) {
      if (!name.startsWith("ses_")) continue
      const file = path.join(root, name)
      if (yield* isGone(file, name)) yield* Effect.ignore(fs.remove(file))
    }
  }).pipe(
    Effect.catchAll((error) => Effect.logWarning("tool outputs could not be swept", error)),
    Effect.withSpan("ToolOutputStore.sweep")
  )

const sweepFolder = (fs: FileSystem.FileSystem, path: Path.Path, { retention, root }: StoreOptions) =>
  Effect.flatMap(Clock.currentTimeMillis, (now) => {
    const oldest = now - Duration.toMillis(retention)
    return removeWhere(fs, path, root, (file) =>
      Effect.map(Effect.option(fs.stat(file)), (info) =>
        Option.exists(
          Option.flatMap(info, ({ mtime }) => mtime),
          (time) => time.getTime() < oldest
        )
      )
    )
  })

const make = Effect.fnUntraced(function* (options: StoreOptions) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const root = path.resolve(options.root)

  const storage = (operation: string) =>
    Effect.mapError((cause: PlatformError.PlatformError) => new ToolStorageError({ operation, cause }))

  const create = (
    owner: OutputOwner,
    attempt: number
  ): Effect.Effect<Created, PlatformError.PlatformError, Scope.Scope> =>
    Effect.suspend(() => {
      const name = fileName(owner, attempt)
      const full = path.join(root, name)
      return fs.open(full, { flag: "wx", mode: 0o600 }).pipe(
        // The umask may have removed permissions.
        Effect.tap(() => fs.chmod(full, 0o600)),
        Effect.map((file) => ({ name, file }))
      )
    }).pipe(
      Effect.catchIf(
        (error) => error._tag === "SystemError" && error.reason === "AlreadyExists" && attempt < attempts,
        () => create(owner, attempt + 1)
      )
    )

  const open = Effect.fn("ToolOutputStore.open")(function* (owner: OutputOwner) {
    yield* storage("creating its folder")(fs.makeDirectory(root, { recursive: true, mode: 0o700 }))
    const { mode, uid } = yield* storage("looking at its folder")(fs.stat(root))
    // In a shared temporary folder another user could have created the folder first, and would own its content.
    if (process.getuid !== undefined && !Option.contains(uid, process.getuid())) {
      return yield* new ToolStorageError({ operation: "using a folder that belongs to another user", cause: root })
    }
    if ((mode & 0o777) !== 0o700) yield* storage("closing its folder to others")(fs.chmod(root, 0o700))
    const { file, name } = yield* storage("creating a file")(create(owner, 0))
    return {
      path: path.join(root, name),
      reference: `${referencePrefix}${name.slice(owner.sessionID.length + 1)}`,
      write: (bytes: Uint8Array) => storage("writing a file")(file.writeAll(bytes))
    }
  })

  const keep: Keep = (owner, text) => Effect.scoped(Effect.tap(open(owner), (file) => file.write(Buffer.from(text))))

  const sweep = sweepFolder(fs, path, { ...options, root })
  yield* Effect.forkScoped(Effect.repeat(sweep, Schedule.spaced("1 hour")))

  return ToolOutputStore.of({
    bound: bounding(keep),
    open,
    sessions: Effect.map(
      Effect.orElseSucceed(fs.readDirectory(root), () => []),
      (names) => new Set(names.filter((name) => name.startsWith("ses_")).map(sessionOf))
    ),
    forget: (sessions) => removeWhere(fs, path, root, (_, name) => Effect.succeed(sessions.has(sessionOf(name)))),
    sweep,
    locate: (sessionID, reference) =>
      /^[A-Za-z0-9._-]{0,80}(\+\d{1,3})?\.txt$/.test(reference.slice(referencePrefix.length)) &&
      reference.startsWith(referencePrefix)
        ? Option.some(path.join(root, `${sessionID}+${reference.slice(referencePrefix.length)}`))
        : Option.none()
  })
})

/** A store in the folder `root`. Files older than `retention` (7 days by default) are removed every hour. */
export const layer = (options: {
  readonly root: string
  readonly retention?: Duration.DurationInput
}): Layer.Layer<ToolOutputStore, never, FileSystem.FileSystem | Path.Path> =>
  Layer.scoped(ToolOutputStore, make({ root: options.root, retention: Duration.decode(options.retention ?? "7 days") }))

/** A store that keeps nothing: truncated output is lost, and the output says so. */
export const layerNothing: Layer.Layer<ToolOutputStore> = Layer.succeed(ToolOutputStore, {
  bound: bounding(() => Effect.succeed(undefined)),
  open: () => Effect.succeed(undefined),
  sessions: Effect.succeed(new Set<string>()),
  locate: () => Option.none(),
  forget: () => Effect.void,
  sweep: Effect.void
})
