/** The configuration file as it is written: its schema, with snake_case keys. `Config.ts` reads it. Spec: CF-1..CF-9. */
import { ParseResult, Schema } from "effect"
import { ConfiguredAgent } from "@daybook/core/agent/AgentDefinition"
import {
  amount,
  boolean,
  counting,
  expects,
  optional,
  selected,
  shaped,
  someText,
  texts,
  whole
} from "@daybook/core/definition/Yaml"
import { NamingMode } from "@daybook/core/session/SessionOptions"
import { nameRule as addressRule, isName } from "@daybook/log/domain/Address"
import { HttpServer, type McpServer, StdioServer } from "@daybook/mcp/McpServer"
import { ageOf, ageRule, sizeOf, sizeRule } from "../support/Amounts.ts"
import { WrittenProvider } from "./ProvidersSection.ts"
import { WrittenShell } from "./ShellSection.ts"
import { amountOf, amountOrNever, isMap, WrittenPrice } from "./Written.ts"

const named = <A, I>(value: Schema.Schema<A, I>) =>
  optional(Schema.Record({ key: Schema.String, value }).pipe(shaped("a map of names")))

const WrittenReference = Schema.Struct({ path: someText, description: optional(someText) })
const WrittenTemplate = Schema.Struct({ body: someText, description: optional(someText) })

const variable = Schema.String.pipe(Schema.pattern(/^[A-Za-z_][A-Za-z0-9_]*$/), expects("the name of a variable"))
const variables = Schema.Array(variable).pipe(shaped("a list of names of variables"))

const toggle = optional(Schema.Literal("off", "on").pipe(expects("off or on")))
/** The section `sandbox`. */
export const WrittenSandbox = Schema.Struct({
  mode: toggle,
  network: toggle,
  writable: optional(texts),
  readable: optional(texts),
  auto_allow: optional(boolean),
  processes: optional(counting),
  memory: optional(counting)
}).pipe(shaped("a map"))

const CommandServer = StdioServer.pipe(shaped("a map with a command or a url"))

const WrittenRetention = Schema.Struct({
  keep: amountOf(ageOf, ageRule),
  max_size: amountOf(sizeOf, sizeRule),
  archive: optional(someText)
}).pipe(
  shaped("a map of keep, max_size and archive"),
  Schema.filter(({ keep, max_size: maxSize }) => keep !== undefined || maxSize !== undefined, {
    message: () => "expected keep, max_size, or both"
  })
)

const WrittenSnapshots = Schema.Struct({
  enabled: optional(boolean),
  max_size: amountOf(sizeOf, sizeRule),
  folders: optional(texts)
}).pipe(shaped("a map of enabled, max_size and folders"))

const agentName = Schema.String.pipe(Schema.filter(isName), expects(`a name: ${addressRule}`))

const audiences = ["owner", "group", "everyone"] as const
const audience = optional(Schema.Literal(...audiences).pipe(expects("owner, group or everyone")))
const WrittenSpace = Schema.Struct({
  agents: optional(Schema.Array(agentName).pipe(shaped("a list of names"))),
  read: audience,
  write: audience,
  group: optional(
    Schema.Union(Schema.NonEmptyString, Schema.NonNegativeInt).pipe(expects("the name or the number of a group"))
  )
}).pipe(
  shaped("a map"),
  Schema.filter(({ read = "owner", write = "owner" }) => audiences.indexOf(write) <= audiences.indexOf(read), {
    message: () => "expected read to be at least as wide as write"
  })
)

/** The whole file. */
export const File = Schema.Struct({
  compaction: optional(
    Schema.Struct({
      enabled: optional(boolean),
      reserve_tokens: optional(counting),
      keep_recent_tokens: optional(whole),
      prune: optional(boolean)
    }).pipe(shaped("a map"))
  ),
  instructions: optional(texts),
  references: named(
    selected<typeof WrittenReference.Type>((value) =>
      isMap(value)
        ? ParseResult.decodeUnknown(WrittenReference)
        : (input, options) =>
            ParseResult.map(ParseResult.decodeUnknown(someText)(input, options), (text) => ({ path: text }))
    )
  ),
  skills: optional(texts),
  agents: named(ConfiguredAgent),
  templates: named(
    selected<typeof WrittenTemplate.Type>((value) =>
      isMap(value)
        ? ParseResult.decodeUnknown(WrittenTemplate)
        : (input, options) => ParseResult.map(ParseResult.decodeUnknown(someText)(input, options), (body) => ({ body }))
    )
  ),
  mcp: named(
    selected<McpServer>((value) =>
      isMap(value) && "url" in value ? ParseResult.decodeUnknown(HttpServer) : ParseResult.decodeUnknown(CommandServer)
    )
  ),
  environment: optional(Schema.Struct({ bash: optional(variables) }).pipe(shaped("a map of bash"))),
  trust: optional(Schema.Struct({ folders: optional(texts) }).pipe(shaped("a map of folders"))),
  sandbox: optional(WrittenSandbox),
  naming: optional(NamingMode.pipe(expects("model, prompt or off"))),
  max_loop_lag: optional(counting),
  permission_timeout: amountOrNever,
  budget: optional(Schema.Struct({ cost: optional(amount), tokens: optional(whole) }).pipe(shaped("a map"))),
  prices: named(WrittenPrice),
  providers: named(WrittenProvider),
  retention: optional(WrittenRetention),
  snapshots: optional(WrittenSnapshots),
  shell: optional(WrittenShell),
  shared: named(WrittenSpace)
}).pipe(shaped("a map of settings"))
