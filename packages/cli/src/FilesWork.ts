/**
 * What `daybook files` does, on the store of a database and with nothing that runs a session.
 * Spec: CL-111..CL-114 in specs/cli.md.
 */
import { Store } from "@daybook/core"
import { Exporter, verify } from "@daybook/files"
import { Effect, Stream } from "effect"
import type { Request } from "./commands/files.ts"
import { FilesDiffer } from "./Errors.ts"
import { layer, rootOf, shared } from "./FilesHost.ts"
import * as Folder from "./Folder.ts"
import { Output } from "./Output.ts"
import { findingJson, findingLine } from "./render/FindingText.ts"
import { jsonLine, oneLine } from "./render/Plain.ts"
import * as SessionReference from "./SessionReference.ts"
import * as Warnings from "./Warnings.ts"

const chosen = ({ session }: Request) =>
  session === undefined
    ? Effect.succeed(undefined)
    : Effect.flatMap(Folder.current, (directory) => SessionReference.resolve(session, directory))

const many = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`

/** Compares; what differs goes to stdout. */
const check = Effect.fn("Command.files.verify")(function* (request: Request, root: string) {
  const output = yield* Output
  const session = yield* chosen(request)
  let found = 0
  yield* Stream.runForEach(verify({ root, sessionID: session?.id, shared: yield* shared }), (finding) => {
    found += 1
    return output.write(request.json ? findingJson(finding, output.terminal) : findingLine(finding))
  })
  const place = oneLine(root, 400)
  if (found === 0) return yield* output.note(`the files at ${place} are as the log says\n`)
  return yield* new FilesDiffer({
    message: `${many(found, "difference")} at ${place}; daybook files rebuild mends them`
  })
})

/** Brings the files to what the log says. What was found of other hands meanwhile is told as it is found. */
const write = Effect.fn("Command.files.write")(function* (request: Request, root: string) {
  const output = yield* Output
  const exporter = yield* Exporter
  const session = yield* chosen(request)
  const { position, sessions } =
    request.action === "rebuild"
      ? yield* exporter.rebuild(session?.id)
      : session === undefined
        ? yield* exporter.catchUp
        : yield* Effect.as(exporter.exportSession(session.id), { position: undefined, sessions: 1 })
  const told = request.action === "rebuild" ? "compared and mended" : "brought up to date"
  yield* output.write(
    request.json
      ? `${jsonLine({ root, sessions, position }, output.terminal)}\n`
      : `${many(sessions, "session")} ${told} at ${oneLine(root, 400)}\n`
  )
})

/** Says on a terminal that it is still at work. */
const patience = Effect.gen(function* () {
  if (process.stderr.isTTY !== true) return
  const output = yield* Output
  let seconds = 0
  const say = Effect.suspend(() => output.note(`still at it: ${(seconds += 5)} s\n`))
  yield* Effect.forkScoped(Effect.forever(Effect.delay(say, "5 seconds")))
})

/** Does what is asked for. */
export const run = Effect.fn("Command.files")(function* (filename: string, request: Request) {
  const root = yield* rootOf(request.root)
  yield* Effect.gen(function* () {
    yield* patience
    if (request.action === "verify") return yield* Effect.provide(check(request, root), Store.layer({ filename }))
    yield* Effect.provide(write(request, root), layer(filename, root))
  }).pipe(Effect.scoped, Effect.provide(Warnings.layer))
})
