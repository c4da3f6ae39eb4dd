/** MCP servers as tools of Daybook sessions. */
export * as Mcp from "./Mcp.ts"
export * as McpServer from "./McpServer.ts"
