/** Tells which tool wrote an entry log, by the shapes of its first records. Spec: FM-15 in specs/formats.md. */
import type { JsonRecord } from "@daybook/log/domain/Json"
import type { Dialect } from "../conversation/Dialect.ts"
import { isTitleSlot } from "./Header.ts"

type EntryDialect = Extract<Dialect, "pi" | "xcsh" | "omp">

const typesOfOmp = new Set<unknown>(["title_change", "model_usage", "credential_pin", "reset_boundary", "archive"])
const typesOfXcsh = new Set<unknown>([
  "context_change",
  "mcp_tool_selection",
  "mode_change",
  "service_tier_change",
  "session_init",
  "ttsr_injection"
])
const typesOfPi = new Set<unknown>(["session_info", "active_tools_change"])
const headerFieldsOfOmp = ["additionalDirectories", "previousSessionFiles", "providerPromptCacheKey"]
const headerFieldsOfPi = ["provider", "modelId", "thinkingLevel", "branchedFrom"]
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

const byFields = (record: JsonRecord): EntryDialect | undefined => {
  const { type } = record
  const has = (field: string) => field in record
  if (isTitleSlot(record) || typesOfOmp.has(type)) return "omp"
  if (type === "session" && headerFieldsOfOmp.some(has)) return "omp"
  if (typesOfPi.has(type) || has("fromHook") || (type === "model_change" && has("modelId"))) return "pi"
  if (typesOfXcsh.has(type) || has("fromExtension") || (type === "model_change" && has("model"))) return "xcsh"
  if (type !== "session") return undefined
  if (has("title") || has("titleSource")) return "xcsh"
  return headerFieldsOfPi.some(has) ? "pi" : undefined
}

/**
 * The dialect of a log that begins with these records. omp's marks win over those of xcsh, which it shares. Without any
 * mark, an id that is a UUID says pi; otherwise the default is xcsh, the dialect of the format's description.
 */
export const dialectOf = (header: JsonRecord, records: ReadonlyArray<JsonRecord>): EntryDialect => {
  const found = new Set([header, ...records].map(byFields))
  const marked = (["omp", "pi", "xcsh"] as const).find((dialect) => found.has(dialect))
  return marked ?? (uuid.test(String(header["id"])) ? "pi" : "xcsh")
}
