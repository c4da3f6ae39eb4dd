/**
 * MCP servers as tools of Daybook sessions.
 *
 * @module @daybook/mcp
 */
export * as Mcp from "./Mcp.ts"
export * as McpServer from "./McpServer.ts"
