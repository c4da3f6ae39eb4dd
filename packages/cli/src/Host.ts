/**
 * The whole runtime on one database, with the providers of the environment, the user's configuration and the person at
 * the terminal. Spec: CL-70..CL-74 in specs/cli.md.
 */
import {
  Daybook,
  type Agents,
  type EventLog,
  type Identifiers,
  type ModelResolver,
  type PermissionAsker,
  type PermissionStore,
  type SessionExecution,
  type Sessions,
  type SessionStore
} from "@daybook/core"
import { Catalog, Models } from "@daybook/models"
import { Effect, Layer, Struct, type ConfigError } from "effect"
import { homedir } from "node:os"
import { join } from "node:path"
import * as Configuration from "./Configuration.ts"
import type { UsageError } from "./Errors.ts"
import { dataFolder, neutralPath, rootPath } from "./Paths.ts"
import * as PermissionPrompt from "./PermissionPrompt.ts"
import * as QuestionPrompt from "./QuestionPrompt.ts"
import * as Trusting from "./Trusting.ts"

/** The models of the environment, for what can be told without a database. */
export const models = Models.layer

/** Reads `provider/model`. */
export const parseModel = Catalog.parseModel

type Services =
  Agents | EventLog | Identifiers | ModelResolver | PermissionStore | SessionExecution | Sessions | SessionStore

type OpenFailure = ConfigError.ConfigError | Layer.Layer.Error<ReturnType<typeof Daybook.layer>>

/** Without configuration: for what neither runs a model nor asks for an agent. */
export const layerBare = (filename: string): Layer.Layer<Services, OpenFailure> =>
  Daybook.layer({ filename }).pipe(Layer.provideMerge(Models.layer))

/** How MCP servers without `cwd` start: in no project, wherever the database is, and with no program of one (MC-33). */
export const serverStart = () => ({
  folder: join(dataFolder(process.env, homedir()), "mcp"),
  path: neutralPath(process.env)
})

/** The runtime's own files, which a sandbox hides wherever they lie; `root` is where session files and sockets are. */
const ownFiles = (root: string) =>
  Effect.map(Configuration.places, ({ file }) => [file, root, dataFolder(process.env, homedir())])

/** What is configured, as the runtime takes it: who shares files is no concern of its. */
const configured = (
  servers: boolean,
  asker: Layer.Layer<PermissionAsker>,
  root = rootPath(process.env, homedir(), process.cwd()),
  worlds: ReadonlyArray<string> = []
) =>
  Effect.map(
    Effect.all([Configuration.load, Trusting.store, ownFiles(root)]),
    ([{ mcp = {}, ...settings }, trust, hidden]) => ({
      ...Struct.omit(settings, "shared", "trust"),
      trust,
      mcp: servers ? mcp : {},
      sandbox: { ...settings.sandbox, hidden, worlds },
      serverStart: serverStart(),
      permissionAsker: asker,
      questions: QuestionPrompt.somebodyAnswers()
    })
  )

/** Everything; MCP servers are started only with `servers`. Permissions are asked at the terminal, or where `asker` does. */
export const layer = (
  filename: string,
  {
    asker = PermissionPrompt.layer,
    root,
    servers,
    worlds
  }: {
    readonly servers: boolean
    readonly asker?: Layer.Layer<PermissionAsker>
    readonly root?: string
    readonly worlds?: ReadonlyArray<string>
  }
): Layer.Layer<Services, OpenFailure | UsageError> =>
  Layer.unwrapEffect(
    Effect.map(configured(servers, asker, root, worlds), (options) => Daybook.layer({ filename, ...options }))
  ).pipe(Layer.provideMerge(Models.layer))

/** The same in memory, with nothing on disk: for sessions that end with their clients. */
export const layerInMemory = (
  asker: Layer.Layer<PermissionAsker>,
  root: string,
  worlds: ReadonlyArray<string>
): Layer.Layer<Services, OpenFailure | UsageError> =>
  Layer.unwrapEffect(
    Effect.map(configured(true, asker, root, worlds), (options) =>
      Daybook.layer({ filename: ":memory:", toolOutputs: false, ...options })
    )
  ).pipe(Layer.provideMerge(Models.layer))
