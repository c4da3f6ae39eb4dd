/**
 * Answers requests about the server: its health, its metrics, its machine, and searches. Spec: HT-39, HT-55, HT-56,
 * HT-540, HT-541, HT-780 in specs/http.md.
 */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import { Effect, Metric, MetricKeyType, type MetricPair, MetricState, Option } from "effect"
import { Api } from "@daybook/api"
import type { OpenShell } from "@daybook/api/group/ServerApi"
import { NotServed, type ShellsUnavailable } from "@daybook/api/wire/Access"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { StatsReport } from "@daybook/log/domain/StoreStats"
import { EventLog, type LogUnavailable, type SessionNotFound } from "@daybook/log/log/EventLog"
import type { Search } from "@daybook/log/search/Search"
import type { Inbox } from "@daybook/log/store/Inbox"
import * as NodeStore from "@daybook/log/store/NodeStore"
import * as Metrics from "@daybook/log/support/Metrics"
import { refusedQuery } from "./Answers.ts"
import * as Streams from "./Streams.ts"

// Writes metrics in the text format of Prometheus.

/** One sample: what follows the name, its labels, and its value. */
interface Sample {
  readonly suffix?: string
  readonly labels?: ReadonlyArray<readonly [string, string]>
  readonly value: number | bigint
}

/** A metric with its samples. */
interface Family {
  readonly name: string
  readonly kind: "counter" | "gauge" | "histogram" | "summary"
  readonly help: string | undefined
  readonly samples: ReadonlyArray<Sample>
}

const nameOf = (text: string): string => text.replaceAll(/[^A-Za-z0-9_:]/g, "_").replace(/^(?=\d)/, "_")
const labelOf = (text: string): string => nameOf(text).replaceAll(":", "_")

const escapes: Readonly<Record<string, string>> = { "\\": "\\\\", "\n": "\\n", '"': '\\"' }
const escaped = (text: string): string => text.replaceAll(/[\\\n"]/g, (found) => escapes[found] ?? found)
const helpText = (text: string): string => text.replaceAll(/[\\\n]/g, (found) => escapes[found] ?? found)

const numberOf = (value: number | bigint): string => {
  if (value === Infinity) return "+Inf"
  return value === -Infinity ? "-Inf" : String(value)
}

const lineOf = (name: string, { labels = [], suffix = "", value }: Sample): string => {
  const shown = labels.map(([key, text]) => `${labelOf(key)}="${escaped(text)}"`).join(",")
  return `${name}${suffix}${shown === "" ? "" : `{${shown}}`} ${numberOf(value)}\n`
}

/** A metric of Effect, with its labels; undefined for a state that its kind does not have. */
const familyOf = ({ metricKey, metricState: state }: MetricPair.MetricPair.Untyped): Family | undefined => {
  const { description, keyType, name, tags } = metricKey
  const labels = tags.map(({ key, value }) => [key, value] as const)
  const family = (kind: Family["kind"], samples: ReadonlyArray<Sample>): Family => ({
    name: nameOf(name),
    kind,
    help: Option.getOrUndefined(description),
    samples: samples.map((sample) => ({ ...sample, labels: [...labels, ...(sample.labels ?? [])] }))
  })
  if (MetricState.isCounterState(state)) {
    const isIncremental = MetricKeyType.isCounterKey(keyType) && keyType.incremental
    return family(isIncremental ? "counter" : "gauge", [{ value: state.count }])
  }
  if (MetricState.isGaugeState(state)) return family("gauge", [{ value: state.value }])
  if (MetricState.isFrequencyState(state)) {
    return family(
      "counter",
      [...state.occurrences].map(([value, count]) => ({ labels: [["value", value]], value: count }))
    )
  }
  if (MetricState.isHistogramState(state)) {
    const buckets = state.buckets.filter(([bound]) => Number.isFinite(bound))
    return family("histogram", [
      ...buckets.map(([bound, count]) => ({
        suffix: "_bucket",
        labels: [["le", numberOf(bound)] as const],
        value: count
      })),
      { suffix: "_bucket", labels: [["le", "+Inf"]], value: state.count },
      { suffix: "_sum", value: state.sum },
      { suffix: "_count", value: state.count }
    ])
  }
  if (MetricState.isSummaryState(state)) {
    return family("summary", [
      ...state.quantiles.flatMap(([quantile, value]) =>
        Option.isNone(value) ? [] : [{ labels: [["quantile", numberOf(quantile)] as const], value: value.value }]
      ),
      { suffix: "_sum", value: state.sum },
      { suffix: "_count", value: state.count }
    ])
  }
  return undefined
}

/** Joins what has one name, such as the same metric with other labels: a name may stand once in the text. */
const joined = (families: ReadonlyArray<Family>): ReadonlyArray<Family> => {
  const byName = new Map<string, Family>()
  for (const family of families) {
    const known = byName.get(family.name)
    if (known === undefined) byName.set(family.name, family)
    // Another kind of metric cannot have the same name.
    else if (known.kind === family.kind) {
      byName.set(family.name, { ...known, samples: [...known.samples, ...family.samples] })
    }
  }
  return [...byName.values()].toSorted((one, other) => (one.name < other.name ? -1 : 1))
}

const textOf = ({ help, kind, name, samples }: Family): string =>
  (help === undefined ? "" : `# HELP ${name} ${helpText(help)}\n`) +
  `# TYPE ${name} ${kind}\n` +
  samples.map((sample) => lineOf(name, sample)).join("")

const encode = (snapshot: ReadonlyArray<MetricPair.MetricPair.Untyped>, more: ReadonlyArray<Family> = []) =>
  joined([...more, ...snapshot.flatMap((pair) => familyOf(pair) ?? [])])
    .map(textOf)
    .join("")

/** What a server says of itself. */
export interface Server {
  readonly version: string
  /** Its address as a node of its database. */
  readonly node?: string | undefined
}

const processFigures = ({ node, version }: Server): ReadonlyArray<Family> => {
  const { system, user } = process.cpuUsage()
  const one = (name: string, kind: Family["kind"], help: string, value: number): Family => ({
    name,
    kind,
    help,
    samples: [{ value }]
  })
  return [
    {
      name: "daybook_info",
      kind: "gauge",
      help: "the server",
      samples: [{ labels: [["version", version], ...(node === undefined ? [] : [["node", node] as const])], value: 1 }]
    },
    one("process_cpu_seconds_total", "counter", "processor time", (user + system) / 1e6),
    one("process_resident_memory_bytes", "gauge", "resident memory", process.memoryUsage.rss()),
    one("process_start_time_seconds", "gauge", "when the process started", performance.timeOrigin / 1000)
  ]
}

const ofProcess = (server: Server): Effect.Effect<string> =>
  Effect.map(Metric.snapshot, (snapshot) => encode(snapshot, processFigures(server)))

// Answers requests about the server's machine, which the host measures and lists.

export interface StatsRequest {
  readonly sessionID?: SessionID | undefined
  readonly exact: boolean
}

/** What the host of the server knows. */
export interface Machine {
  readonly stats: (what: StatsRequest) => Effect.Effect<StatsReport, SessionNotFound | LogUnavailable>
  readonly shells: Effect.Effect<ReadonlyArray<OpenShell>, ShellsUnavailable>
}

/** Measurements at a time: the others wait. */
const measurements = 1

/** Asks the machine, if the host gives one. */
export const machineLayer = (machine: Partial<Machine> = {}) => {
  const { shells, stats } = machine
  const one = Effect.unsafeMakeSemaphore(measurements).withPermits(1)
  const measured = (what: StatsRequest) => (stats === undefined ? new NotServed({ what: "stats" }) : one(stats(what)))
  // A session that cannot be read is a defect of its database.
  const nodes = Effect.catchTag(NodeStore.report, "MessageUnreadable", Effect.die)
  return HttpApiBuilder.group(Api, "machine", (handlers) =>
    Effect.map(Effect.context<NodeStore.NodeStore | Inbox>(), (context) =>
      handlers
        .handle("stats", ({ urlParams }) => measured({ exact: urlParams.exact === "1" }))
        .handle("sessionStats", ({ path, urlParams }) => measured({ ...path, exact: urlParams.exact === "1" }))
        .handle("shells", () => shells ?? new NotServed({ what: "shells" }))
        .handle("nodes", () => Effect.provide(nodes, context))
    )
  )
}

// Answers searches.

type SearchService = typeof Search.Service

/** How long a search waits for the index. `behind` of its result counts the events that are missing then. */
const patience = "500 millis"

export const searchLayer = (search: SearchService | undefined) => {
  const searching = <A, E>(use: (service: SearchService) => Effect.Effect<A, E>) =>
    search === undefined
      ? new NotServed({ what: "search" })
      : Effect.zipRight(Effect.timeoutOption(search.update(), patience), use(search))
  return HttpApiBuilder.group(Api, "search", (handlers) =>
    handlers
      .handle("search", ({ urlParams }) => searching((service) => service.search(urlParams)))
      .handle("prompts", ({ urlParams }) => searching((service) => service.prompts(urlParams)))
  )
}

// Answers requests about the server itself.

/** A write is tried at most this often: anyone may ask for the health. */
const probeEvery = "1 second"

export const serverLayer = (server: Server) =>
  HttpApiBuilder.group(Api, "server", (handlers) =>
    Effect.gen(function* () {
      const { version } = server
      const { begun } = yield* Streams.Drain
      const { probe } = yield* EventLog
      // A client that leaves does not stop the write that others wait for.
      const writable = yield* Effect.cachedWithTTL(Effect.uninterruptible(Effect.exit(probe)), probeEvery)
      return handlers
        .handle("health", ({ request: { url } }) =>
          Effect.gen(function* () {
            const refused = refusedQuery({ method: "GET", path: "/health" }, url)
            if (refused !== undefined) return yield* refused
            const lagMs = Math.round((yield* Metric.value(Metrics.loopLagAt("0.5"))).value)
            if (yield* begun) return { status: "draining" as const, version, lagMs }
            yield* Effect.flatten(writable)
            return { status: "ok" as const, version, lagMs }
          })
        )
        .handle("serverMetrics", () => ofProcess(server))
    })
  )
