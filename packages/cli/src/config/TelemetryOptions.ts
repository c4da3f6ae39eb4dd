/** Parses OpenTelemetry's standard variables for the export over OTLP. Pure. Spec: CL-128 in specs/cli.md. */
import { Effect } from "effect"

type Env = Readonly<Record<string, string | undefined>>

const protocols = ["http/json", "http/protobuf"] as const
type Protocol = (typeof protocols)[number]

interface Exporter {
  readonly protocol: Protocol
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly exportInterval?: number
}

export interface Options {
  readonly resource: { readonly serviceName: string }
  readonly exporters: Readonly<Partial<Record<Signal, Exporter>>>
}

const signals = ["traces", "metrics", "logs"] as const
type Signal = (typeof signals)[number]

/** How often each signal is sent, in milliseconds. */
const intervals: Readonly<Record<Signal, string>> = {
  traces: "OTEL_BSP_SCHEDULE_DELAY",
  metrics: "OTEL_METRIC_EXPORT_INTERVAL",
  logs: "OTEL_BLRP_SCHEDULE_DELAY"
}

/** An empty variable counts as unset, as the specification requires. */
const get = (env: Env, name: string): string | undefined => {
  const value = env[name]?.trim()
  return value === "" ? undefined : value
}

/** Whether anything is exported; checked before the exporter is loaded. */
export const isWanted = (env: Env): boolean =>
  get(env, "OTEL_SDK_DISABLED")?.toLowerCase() !== "true" &&
  ["", ...signals.map((signal) => `${signal.toUpperCase()}_`)].some(
    (part) => get(env, `OTEL_EXPORTER_OTLP_${part}ENDPOINT`) !== undefined
  )

const isUrl = (text: string): boolean => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)

/** `name=value,name=value`, where values are percent-encoded. */
const headersOf = (text: string, name: string): Effect.Effect<Record<string, string>, string> =>
  Effect.try({
    try: () =>
      Object.fromEntries(
        text
          .split(",")
          .filter((pair) => pair.trim() !== "")
          .map((pair) => {
            const equals = pair.indexOf("=")
            const key = pair.slice(0, Math.max(0, equals)).trim()
            if (!/^[!#$%&'*+.^_`|~\w-]+$/.test(key)) throw new Error()
            return [key, decodeURIComponent(pair.slice(equals + 1).trim())]
          })
      ),
    // Its value may be a secret.
    catch: () => `${name}: expected name=value,name=value with percent-encoded values`
  })

/** A signal's own variable overrides the shared one. */
const protocolOf = (env: Env, upper: string): Effect.Effect<Protocol, string> => {
  const names = [`OTEL_EXPORTER_OTLP_${upper}_PROTOCOL`, "OTEL_EXPORTER_OTLP_PROTOCOL"]
  const name = names.find((each) => get(env, each) !== undefined)
  if (name === undefined) return Effect.succeed("http/protobuf")
  const known = protocols.find((each) => each === get(env, name))
  return known === undefined ? Effect.fail(`${name}: expected http/protobuf or http/json`) : Effect.succeed(known)
}

const exporter = (env: Env, signal: Signal): Effect.Effect<Exporter | undefined, string> =>
  Effect.gen(function* () {
    const upper = signal.toUpperCase()
    if (get(env, `OTEL_${upper}_EXPORTER`) === "none") return undefined
    const own = get(env, `OTEL_EXPORTER_OTLP_${upper}_ENDPOINT`)
    const shared = get(env, "OTEL_EXPORTER_OTLP_ENDPOINT")
    const url = own ?? (shared === undefined ? undefined : `${shared.replace(/\/+$/, "")}/v1/${signal}`)
    if (url === undefined) return undefined
    const named = own === undefined ? "OTEL_EXPORTER_OTLP_ENDPOINT" : `OTEL_EXPORTER_OTLP_${upper}_ENDPOINT`
    if (!isUrl(url)) return yield* Effect.fail(`${named}: expected an http or https address`)
    const headers = yield* Effect.forEach(
      ["OTEL_EXPORTER_OTLP_HEADERS", `OTEL_EXPORTER_OTLP_${upper}_HEADERS`],
      (name) => headersOf(get(env, name) ?? "", name)
    )
    const given = get(env, intervals[signal])
    const interval = given === undefined ? undefined : Number(given)
    if (interval !== undefined && !(Number.isInteger(interval) && interval > 0)) {
      return yield* Effect.fail(`${intervals[signal]}: expected milliseconds`)
    }
    return {
      protocol: yield* protocolOf(env, upper),
      url,
      headers: Object.assign({}, ...headers),
      ...(interval === undefined ? {} : { exportInterval: interval })
    }
  })

/** The options; undefined if nothing is exported. The error is a sentence about the invalid variable. */
export const read = (env: Env): Effect.Effect<Options | undefined, string> =>
  Effect.gen(function* () {
    if (!isWanted(env)) return undefined
    const found = yield* Effect.forEach(signals, (signal) =>
      Effect.map(exporter(env, signal), (made) => (made === undefined ? [] : [[signal, made] as const]))
    )
    const [, named] = /(?:^|,)\s*service\.name\s*=\s*([^,]+)/.exec(get(env, "OTEL_RESOURCE_ATTRIBUTES") ?? "") ?? []
    return {
      resource: { serviceName: get(env, "OTEL_SERVICE_NAME") ?? named?.trim() ?? "daybook" },
      exporters: Object.fromEntries(found.flat())
    }
  })
