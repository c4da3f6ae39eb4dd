/** What a server says besides `Sessions`: figures of its database, searches, limits of sessions, live shells. Spec: HT-39, HT-55, HT-56, HT-59, HT-504. */
import { Effect } from "effect"
import type { OfferedAgent, OfferedModels, OfferedTemplate } from "@daybook/api/group/ChoicesApi"
import type { Decision, OpenPermission, PermissionClosed } from "@daybook/api/group/PermissionsApi"
import type { OpenShell } from "@daybook/api/group/MachineApi"
import type { SessionLimits } from "@daybook/api/group/SessionsApi"
import type { NotServed, ShellsUnavailable } from "@daybook/api/wire/Access"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { InvalidInput } from "@daybook/log/domain/InvalidInput"
import type { StatsReport } from "@daybook/log/domain/StoreStats"
import type { LogUnavailable, SessionNotFound } from "@daybook/log/log/EventLog"
import type { PromptsOptions, PromptsPage, SearchOptions, SearchPage } from "@daybook/log/search/Search"
import type { StoreError } from "@daybook/log/store/StoreError"
import { answered } from "./connection/Answered.ts"
import type { ConnectionError } from "./connection/ClientError.ts"
import { ofSession } from "./connection/OfSession.ts"
import type { derived } from "./Verbs.ts"

/** What to measure. */
export interface Measuring {
  /** One session of the database. Default: the whole database. */
  readonly sessionID?: SessionID | undefined
  /** Count everything, also if the database is large. */
  readonly exact?: boolean | undefined
}

/** Where to look. */
export interface InFolder {
  readonly directory?: string | undefined
}

export interface Machine {
  /** Where the bytes of the database or of a session are, and what the session did (ST-50). */
  readonly stats: (
    what?: Measuring
  ) => Effect.Effect<StatsReport, SessionNotFound | LogUnavailable | NotServed | ConnectionError>
  /** The window of the session's model, and the configured budget if it holds for the session. */
  readonly limits: (
    sessionID: SessionID
  ) => Effect.Effect<SessionLimits, SessionNotFound | StoreError | ConnectionError>
  /** Calls that wait for a person's permission (HT-37). */
  readonly permissions: Effect.Effect<ReadonlyArray<OpenPermission>, ConnectionError>
  readonly decide: (
    sessionID: SessionID,
    ask: string,
    decision: Decision
  ) => Effect.Effect<void, PermissionClosed | ConnectionError>
  /** One page of the sessions whose texts match, the best first. The server indexes new events first (HT-39). */
  readonly search: (
    options: SearchOptions
  ) => Effect.Effect<SearchPage, InvalidInput | LogUnavailable | NotServed | ConnectionError>
  /** The prompts of people, the newest first. */
  readonly prompts: (
    options?: PromptsOptions
  ) => Effect.Effect<PromptsPage, InvalidInput | LogUnavailable | NotServed | ConnectionError>
  /** The models that sessions can be given, with those that miss a setting, and the providers that did not list theirs. */
  readonly models: Effect.Effect<OfferedModels, NotServed | ConnectionError>
  /** The agents of the server and its user; with a folder, also those of its project. */
  readonly agents: (options?: InFolder) => Effect.Effect<ReadonlyArray<OfferedAgent>, InvalidInput | ConnectionError>
  /** The templates of the server and its user; with a folder, also those of its project. */
  readonly templates: (
    options?: InFolder
  ) => Effect.Effect<ReadonlyArray<OfferedTemplate>, InvalidInput | ConnectionError>
  /** The open live shells of the server's machine. `follow` with the types of `shellTypes` watches them. */
  readonly shells: Effect.Effect<ReadonlyArray<OpenShell>, NotServed | ShellsUnavailable | ConnectionError>
}

/** The questions over a connection. */
export const make = ({
  choices,
  machine,
  permissions,
  search,
  sessions
}: Effect.Effect.Success<ReturnType<typeof derived>>): Machine => ({
  stats: ({ exact = false, sessionID } = {}) => {
    const urlParams = exact ? { exact: "1" as const } : {}
    return sessionID === undefined
      ? answered(machine.stats({ urlParams }))
      : ofSession(sessionID, (at) => machine.sessionStats({ ...at, urlParams }))
  },
  limits: (sessionID) => ofSession(sessionID, sessions.limits),
  permissions: answered(permissions.allPermissions()),
  decide: (sessionID, ask, decision) => {
    const path = { sessionID, ask }
    switch (decision.decision) {
      case "always":
        return answered(permissions.decide({ path, payload: decision }))
      case "correct":
        return answered(permissions.decide({ path, payload: decision }))
      default:
        return answered(permissions.decide({ path, payload: decision }))
    }
  },
  search: (urlParams) => answered(search.search({ urlParams })),
  prompts: (urlParams = {}) => answered(search.prompts({ urlParams })),
  models: answered(choices.models()),
  agents: (urlParams = {}) => answered(choices.agents({ urlParams })),
  templates: (urlParams = {}) => answered(choices.templates({ urlParams })),
  shells: answered(machine.shells())
})
