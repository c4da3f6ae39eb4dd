/** Opens the screen: finds the folder, the session and the runtime. Spec: SC-501, SC-502, SC-535 in specs/screen.md. */
import { Effect, Option } from "effect"
import type { Session } from "@daybook/log/domain/Message"
import { SessionStore } from "@daybook/log/store/SessionStore"
import * as Folder from "../arguments/Folder.ts"
import * as RunMode from "../arguments/RunMode.ts"
import * as SessionReference from "../arguments/SessionReference.ts"
import * as DatabasePath from "../config/DatabasePath.ts"
import { recent } from "../arguments/SessionReference.ts"
import { Remote } from "../host/Remote.ts"
import {
  configuration,
  inMode,
  modelOfProject,
  parsedModel,
  told,
  trusting,
  withAsker,
  withNewSessions,
  withReader
} from "../host/Runtime.ts"
import { isMissing, noSessions, UsageError } from "../support/Errors.ts"
import * as Asks from "./Asks.ts"
import * as Draft from "./Draft.ts"
import * as Plain from "./Plain.ts"
import * as Screen from "./Screen.ts"
import type { ScreenOptions } from "./TopLevel.ts"
import { Words } from "./Words.ts"

/** What the words after `daybook` say. */
export type OpenRequest = Omit<ScreenOptions, "prompt" | "rest">

/** Whether a person can use the screen here. */
export const canOpen = (): boolean =>
  process.stdin.isTTY === true && process.stdout.isTTY === true && process.env["TERM"] !== "dumb"

const noTerminal = () =>
  new UsageError({ message: "the screen needs a terminal for stdin and stdout; daybook -p TEXT runs one prompt" })

/** The last session here; over a server, whose folders are elsewhere, its last one if none is of this folder. */
const lastOne = (directory: string) =>
  Effect.catchTag(recent(directory), "NotFound", (none) =>
    Effect.gen(function* () {
      if ((yield* Remote) === undefined) return yield* none
      const { items } = yield* (yield* SessionStore).list({ limit: 20 })
      return items.find(({ parentID }) => parentID === undefined) ?? (yield* none)
    })
  )

/** The session to begin with, and the one that is offered. */
const sessionsOf = Effect.fnUntraced(function* (
  { goOn, session }: OpenRequest,
  directory: string,
  left: string | undefined
) {
  const none = { session: undefined, offered: undefined }
  const beginning = Effect.suspend(() =>
    session === undefined && !goOn ? Effect.succeed(none) : Effect.fail(noSessions())
  )
  if ((yield* Remote) === undefined && !(yield* DatabasePath.exists)) return yield* beginning
  return yield* withReader(
    Effect.gen(function* () {
      if (session !== undefined)
        return { session: yield* SessionReference.resolve(session, directory), offered: undefined }
      if (left !== undefined) {
        const found = yield* Effect.option(SessionReference.resolve(left, directory))
        if (found._tag === "Some") return { session: found.value, offered: undefined }
      }
      if (goOn) return { session: yield* lastOne(directory), offered: undefined }
      const last = yield* Effect.catchTag(lastOne(directory), "NotFound", () => Effect.succeed(undefined))
      return { session: undefined as Session | undefined, offered: last }
    })
  ).pipe(Effect.catchIf(isMissing, () => beginning))
})

const recalled = Effect.gen(function* () {
  if ((yield* Remote) !== undefined || !(yield* DatabasePath.exists)) return []
  const { recalled } = yield* Effect.promise(() => import("../commands/search.ts"))
  return yield* recalled
})

/** Opens the screen, until the person leaves. */
export const open = (wanted: OpenRequest) =>
  Effect.flatMap(RunMode.flags.allow.read(wanted.allow), (allow) =>
    inMode({ ...wanted, allow })(opened(wanted).pipe(told(wanted.trust)))
  )

const opened = Effect.fnUntraced(function* (wanted: OpenRequest) {
  if (!wanted.plain && !canOpen()) return yield* noTerminal()
  const directory = yield* Folder.current
  const left = wanted.plain || wanted.session !== undefined ? Draft.none : Draft.recover(directory)
  const { offered, session } = yield* sessionsOf(wanted, directory, left.sessionID)
  const words = yield* Words
  const model = wanted.model === undefined ? undefined : yield* parsedModel(wanted.model)
  yield* trusting(session?.location.directory ?? directory)
  // Ctrl-D instead of an answer ended stdin: there are no more keys.
  if (!wanted.plain && process.stdin.readableEnded) return
  const remote = yield* Remote
  const settings = yield* Effect.option(configuration)
  const options = {
    notifies: !Option.exists(settings, ({ notifications }) => notifications === "off"),
    directory: remote === undefined ? (session?.location.directory ?? directory) : directory,
    session,
    offered,
    preferred: {
      ...(model === undefined ? {} : { model }),
      ...(wanted.agent === undefined ? {} : { agent: wanted.agent })
    },
    projects: yield* modelOfProject(directory),
    recalled: Effect.provideService(recalled, Remote, remote).pipe(Effect.catchAll(() => Effect.succeed([]))),
    verb: words
  }
  if (wanted.plain) return yield* withNewSessions(Plain.run(options))
  const asks = Asks.make()
  yield* withAsker(asks.layer)(Screen.run({ ...options, left, asks }))
})
