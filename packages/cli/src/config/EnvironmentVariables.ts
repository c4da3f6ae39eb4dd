/** Expands `${env:NAME}` in the settings of MCP servers, so that secrets stay out of the file. Pure. Spec: CF-8. */
import { Predicate, Redacted } from "effect"
import { type Issue, type Parsed, showPath } from "@daybook/core/definition/Yaml"

type Environment = Readonly<Record<string, string | undefined>>

const reference = /\$\{env:([^}]*)(\}?)/g

/** The redacted text with its variables expanded, or one error per variable. */
const expand = (text: string, environment: Environment): Redacted.Redacted | ReadonlyArray<string> => {
  const faults: Array<string> = []
  const expanded = text.replaceAll(reference, (_, name: string, close: string) => {
    const value = environment[name]
    if (close === "" || !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name))
      faults.push("expected ${env:NAME} with a variable's name")
    else if (value === undefined) faults.push(`the environment variable ${name} is not set`)
    return value ?? ""
  })
  return faults.length === 0 ? Redacted.make(expanded) : faults
}

/** Expands the variables in `mcp.*.env` and `mcp.*.headers`. Disabled servers are skipped. */
export const expandVariables = (
  { at, value }: Parsed,
  environment: Environment
): { readonly value: unknown; readonly issues: ReadonlyArray<Issue> } => {
  if (!Predicate.isRecord(value) || !Predicate.isRecord(value.mcp)) return { value, issues: [] }
  const issues: Array<Issue> = []
  const entry = (path: ReadonlyArray<string>, written: unknown) => {
    if (typeof written !== "string" || !written.includes("${env:")) return written
    const expanded = expand(written, environment)
    if (Redacted.isRedacted(expanded)) return expanded
    issues.push(...expanded.map((details) => ({ path: showPath(path), ...at(path), details })))
    return ""
  }
  const section = (path: ReadonlyArray<string>, written: unknown) =>
    Predicate.isRecord(written)
      ? Object.fromEntries(Object.entries(written).map(([key, each]) => [key, entry([...path, key], each)]))
      : written
  const server = (name: string, written: unknown) => {
    if (!Predicate.isRecord(written) || written.enabled === false) return written
    const given = (["env", "headers"] as const).filter((key) => key in written)
    return { ...written, ...Object.fromEntries(given.map((key) => [key, section(["mcp", name, key], written[key])])) }
  }
  const mcp = Object.fromEntries(Object.entries(value.mcp).map(([name, written]) => [name, server(name, written)]))
  return { value: { ...value, mcp }, issues }
}
