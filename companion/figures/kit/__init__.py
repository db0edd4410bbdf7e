"""What figures are built from: the element, drawings, tables and scripts."""
