/** Asks clients for permissions, within the time limit of the configuration. Spec: CF-480 in specs/config.md. */
import { Effect } from "effect"
import { Asks } from "@daybook/server"
import * as Configuration from "../config/Configuration.ts"

/** The asks of this process's sessions; permissions wait without a limit by default. */
export const make = Effect.map(Configuration.load, ({ permissionTimeout = 0 }) =>
  Asks.make(permissionTimeout === 0 ? {} : { patience: permissionTimeout })
)
