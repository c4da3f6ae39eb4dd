/**
 * Opens the log of a place: the one part of the command that knows both databases. PostgreSQL is loaded when it is used.
 * Spec: CL-800, CL-803 in specs/cli.md.
 */
import { Effect, Layer } from "effect"
import type * as SqlSearch from "@daybook/log/search/SqlSearch"
import { searchPath } from "@daybook/log/storage/SearchFile"
import * as Store from "@daybook/log/Store"
import type { Place, ServerPlace } from "../config/DatabasePath.ts"

const settingsOf = (place: ServerPlace) => ({ ...place, searchIndex: searchPath(place.path) })

/** A database of PostgreSQL, for the runtime. */
export const elsewhere = (place: ServerPlace): Effect.Effect<Store.Elsewhere> =>
  Effect.map(
    Effect.promise(() => import("@daybook/postgres")),
    ({ Postgres }) => Postgres.config(settingsOf(place))
  )

/** The log and its stores. */
export const layer = (place: Place) =>
  place._tag === "File"
    ? Store.layer({ filename: place.path })
    : Layer.unwrapEffect(Effect.map(elsewhere(place), ({ layer }) => layer()))

/** As `layer`, for a process that only reads. */
export const layerReading = (place: Place) =>
  place._tag === "File" ? Store.layerReading({ filename: place.path }) : layer(place)

/** Connections to PostgreSQL for searches. */
const searchConnections = 3

type Searching = Layer.Layer<
  Layer.Layer.Context<typeof SqlSearch.layer>,
  Layer.Layer.Error<ReturnType<typeof Store.layerReading>>
>

/** As `layerReading`, for a search: of PostgreSQL only the connections. */
export const layerSearching = (place: Place): Searching =>
  place._tag === "File"
    ? Store.layerReading({ filename: place.path })
    : Layer.unwrapEffect(
        Effect.map(
          Effect.promise(() => import("@daybook/postgres")),
          ({ Postgres }): Searching =>
            Postgres.layerConnections({ ...settingsOf(place), connections: searchConnections })
        )
      )
