/** The whole runtime on one database, with the providers of the environment and the person at the terminal. */
import {
  Daybook,
  type Agents,
  type EventLog,
  type Identifiers,
  type ModelResolver,
  type Sessions,
  type SessionStore
} from "@daybook/core"
import { Catalog, Models } from "@daybook/models"
import { Layer, type ConfigError } from "effect"
import * as PermissionPrompt from "./PermissionPrompt.ts"

/** The models of the environment, for what can be told without a database. */
export const models = Models.layer

/** Reads `provider/model`. */
export const parseModel = Catalog.parseModel

type Services = Agents | EventLog | Identifiers | ModelResolver | Sessions | SessionStore

type Failures = ConfigError.ConfigError | Layer.Layer.Error<ReturnType<typeof Daybook.layer>>

export const layer = (filename: string): Layer.Layer<Services, Failures> =>
  Daybook.layer({ filename, permissionAsker: PermissionPrompt.layer }).pipe(Layer.provideMerge(Models.layer))
