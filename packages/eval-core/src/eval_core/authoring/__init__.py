"""What helps to write a set: inspecting one, deriving drafts, adding questions."""
