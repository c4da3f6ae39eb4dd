/** The promise of `@daybook/core`. */
export * from "./model/ModelResolver.ts"
export * from "./model/ProviderError.ts"
