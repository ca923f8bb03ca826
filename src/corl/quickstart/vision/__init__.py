"""The demonstration's sibling: two small vision-language families that read a chain off a picture.

Importing this package loads neither torch nor transformers.
"""
