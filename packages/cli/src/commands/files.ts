/** `daybook files`: writes, checks and repairs the plain files of sessions. Spec: CL-111..CL-114 in specs/cli.md. */
import { Effect, Stream } from "effect"
import { Exporter } from "@daybook/files/Exporter"
import type { Finding } from "@daybook/files/layout/Errors"
import type { Exported } from "@daybook/files/ExporterRequests"
import { verify } from "@daybook/files/verify/Verify"
import * as Garbage from "@daybook/log/support/Garbage"
import * as Flags from "../arguments/Flags.ts"
import * as SessionReference from "../arguments/SessionReference.ts"
import { verb } from "../arguments/Verb.ts"
import { didYouMean } from "../support/Nearest.ts"
import * as DatabasePath from "../config/DatabasePath.ts"
import * as PlaceStore from "../host/PlaceStore.ts"
import { layer, rootOf, shared } from "../host/FilesHost.ts"
import { oneLine } from "../render/Plain.ts"
import { many } from "../support/Amounts.ts"
import { FilesDiffer, UsageError } from "../support/Errors.ts"
import { Output, reporting, writeJson } from "../terminal/Output.ts"
import * as Logs from "../terminal/Logs.ts"

export const findingLine = ({ details, kind, path }: Finding): string =>
  `${kind.padEnd(7)}  ${oneLine(path, 400)}  ${oneLine(details, 400)}\n`

/** What `daybook files` can do. */
type Action = "export" | "verify" | "rebuild"

interface Request {
  readonly action: Action
  readonly root: string | undefined
  readonly session: string | undefined
  readonly json: boolean
}

const chosen = ({ session }: Request) =>
  session === undefined ? Effect.succeed(undefined) : SessionReference.resolveHere(session)

/** Compares the files with the log and writes differences to stdout. */
const check = Effect.fn("Command.files.verify")(function* (request: Request, root: string) {
  const output = yield* Output
  const session = yield* chosen(request)
  let [found, pruned] = [0, 0]
  yield* Stream.runForEach(verify({ root, sessionID: session?.id, shared: yield* shared }), (finding) => {
    if (finding.kind === "pruned") pruned += 1
    else found += 1
    return request.json ? writeJson(finding) : output.write(findingLine(finding))
  })
  const place = oneLine(root, 400)
  const rest = pruned === 0 ? "" : `; ${many(pruned, "pruned session")} not compared`
  if (found === 0) return yield* output.note(`the files at ${place} match the log${rest}\n`)
  return yield* new FilesDiffer({
    message: `${many(found, "difference")} at ${place}; daybook files rebuild repairs them${rest}`
  })
})

/** Writes the files from the log. Reports changes by others as it finds them. */
const write = Effect.fn("Command.files.write")(function* (request: Request, root: string) {
  const output = yield* Output
  const exporter = yield* Exporter
  const session = yield* chosen(request)
  const exported: Partial<Exported> =
    request.action === "rebuild"
      ? yield* exporter.rebuild(session?.id)
      : session === undefined
        ? yield* exporter.catchUp
        : yield* Effect.as(exporter.exportSession(session.id), { sessions: 1 })
  const { left = 0, position, sessions = 0 } = exported
  const told = request.action === "rebuild" ? "compared and repaired" : "brought up to date"
  yield* request.json
    ? writeJson({ root, sessions, position, ...(left > 0 ? { left } : {}) })
    : output.write(`${many(sessions, "session")} ${told} at ${oneLine(root, 400)}\n`)
  if (left > 0)
    return yield* new FilesDiffer({ message: `the files of ${many(left, "session")} were left as they are` })
})

/** Reports progress on a terminal. */
const patience = Effect.suspend(() => {
  let seconds = 0
  return reporting("5 seconds", () => `still working: ${(seconds += 5)} s`)
})

const run = Effect.fn("Command.files")(function* (place: DatabasePath.Place, request: Request) {
  Garbage.bound()
  const root = yield* rootOf(request.root)
  yield* Effect.gen(function* () {
    yield* patience
    if (request.action === "verify") return yield* Effect.provide(check(request, root), PlaceStore.layer(place))
    yield* Effect.provide(write(request, root), layer(place, root))
  }).pipe(Effect.scoped, Effect.provide(Logs.warnings))
})

const root = Flags.text("root", "DIR", "the folder of the files (default: DAYBOOK_ROOT, else ctx beside the database)")
const session = Flags.text("session", "ID|TITLE", "only this session")

const actions: ReadonlyArray<Action> = ["export", "verify", "rebuild"]

const actionOf = (words: ReadonlyArray<string>): Effect.Effect<Action, UsageError> => {
  const [word, more] = words
  const action = actions.find((each) => each === word)
  if (action !== undefined && more === undefined) return Effect.succeed(action)
  const message =
    word === undefined
      ? `say what to do: daybook files ${actions.join(", ")}`
      : `daybook files: expected ${actions.join(", ")}, got "${oneLine(words.join(" "), 80)}"${didYouMean(word, actions)}`
  return new UsageError({ message })
}

export const files = verb({
  name: "files",
  summary: "write, check or repair the plain files of sessions",
  words: "export|verify|rebuild",
  details: [
    "export brings the files to the end of the log, continuing where it stopped. verify compares them with the log, byte " +
      "for byte, and changes nothing. rebuild rewrites the files that differ. A file that was changed by others is reported, " +
      "and kept beside its replacement under a name that contains .aside.",
    "While daybook serve runs, only it may write the files of its root; verify still works. The exit code of verify is 1 " +
      "if a file differs."
  ],
  given: { words: Flags.many("ACTION"), root, session, json: Flags.json },
  examples: [
    ["daybook files export", "writes every session as files for less, grep and ctx"],
    ["daybook files verify --json | jq .path", "prints the files that differ"],
    ["daybook files rebuild --session fix", "rewrites one session's files from its events"]
  ],
  run: (given) =>
    Effect.gen(function* () {
      const action = yield* actionOf(given.words)
      const place = yield* DatabasePath.existing
      yield* run(place, { ...given, action })
    })
})
