import type { Layer } from "effect"
import type { EventLog } from "../../packages/log/src/log/EventLog.ts"

/** One implementation of a service that reads what a log stores, beside that log. */
export interface ReadModel<Service, E> {
  /** For the titles. */
  readonly name: string
  readonly layer: Layer.Layer<Service | EventLog, E>
}
