/** The embedded runtime, with the namespaces that an application needs beside it. */
export * as Daybook from "./Daybook.ts"
export * from "@daybook/core"
export * from "@daybook/log"
export * from "@daybook/mcp"
export * from "@daybook/tools"
